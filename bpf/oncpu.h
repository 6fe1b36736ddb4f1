/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"
#include "stacks.h"

/* What samples are counted by. Programs that a process is one after the other may have equal addresses, not names. */
struct oncpu_key {
	u32 cpu;
	u32 tgid;
	u32 tid;
	s32 kernel_stack; /* ids in the half's stack map, negative for none */
	s32 user_stack;
	char comm[16];
};

struct oncpu_count {
	u64 weight;   /* samples */
	u64 first_ns; /* when the first of them was taken: which program the process was then */
};

/* One row per CPU, written by that CPU alone. */
struct oncpu_row {
	struct stack_use use;
	u64 busy; /* samples that hit a task, wanted or not */
	u64 idle; /* samples that hit the idle task */
	u64 pad[2];
};
