/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"
#include "stacks.h"

/* Of prev_state, what tells kinds of sleep apart: interruptible, uninterruptible, stopped, traced, parked, no load. */
#define OFFCPU_STATES 0x44f

/* After so many short blocks in a row, a task's stack is taken at one block in OFFCPU_SAMPLE only. */
#define OFFCPU_SHORTS 4

/* No stack because it was not taken: more negative than any error. */
#define OFFCPU_NOT_TAKEN -4096

/*
 * Who ended a block: 0 nobody was seen, a task, a softirq (with its vector above), a hard interrupt. The reader's own:
 * nobody until the end, of a block that began here or before all of it.
 */
#define OFFCPU_BY_TASK 1
#define OFFCPU_BY_SOFTIRQ 2
#define OFFCPU_BY_HARDIRQ 3
#define OFFCPU_STILL 4
#define OFFCPU_ALL_ALONG 5
#define OFFCPU_VECTOR_SHIFT 8

struct offcpu_waker {
	char comm[16]; /* of a task */
	u32 kind;
};

/* One per task that has blocked, until it exits. The CPU that switches the task writes it; waker is the waking one's. */
struct offcpu_task {
	u64 blocked_ns; /* when it blocked; 0: it isn't blocked */
	s32 kernel_stack;
	s32 user_stack;
	u32 generation; /* of these ids */
	u32 cpu;        /* where it blocked */
	u32 state;
	u32 shorts; /* short blocks in a row */
	struct offcpu_waker waker;
	u32 pad;
};

/* What off-CPU time is counted by: comm, as with oncpu. */
struct offcpu_key {
	u32 cpu;
	u32 tgid;
	u32 tid;
	u32 state;
	s32 kernel_stack; /* ids in the stack map of their generation, negative for none */
	s32 user_stack;
	u32 generation;
	struct offcpu_waker waker;
	char comm[16];
};

struct offcpu_count {
	u64 weight;   /* ns */
	u64 first_ns; /* when the first of them began */
	u64 count;
};

/* One row per CPU, written by that CPU alone. */
struct offcpu_row {
	struct stack_use use;
	u64 short_blocks; /* shorter than the setting, not counted otherwise */
	u64 short_ns;
	u64 negative;   /* blocks that ended before they began, by the clock */
	u64 full_tasks; /* blocks not noted: no room for the task */
};
