/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/*
 * Who waits since when: one 64-bit word per waiting task, RUNQUEUE_WAYS places for every pid.
 * 65,536 places serve 20,000 threads that all wait: consecutive pids never share a place.
 */
#define RUNQUEUE_SET_BITS 14
#define RUNQUEUE_SETS 16384
#define RUNQUEUE_WAYS 4

/* A word: the pid's upper bits plus one, then the time the wait began, ns modulo 2^55 (417 days). 0 is free. */
#define RUNQUEUE_TIME_BITS 55

struct runqueue_set {
	u64 ways[RUNQUEUE_WAYS];
};

/* Where a waiting task was moved from: pid's upper bits (6), CPU (12), time (46 bits of ns, 19 hours). */
#define RUNQUEUE_MOVES 65536

struct runqueue_move {
	u64 word;
};

/* One row per CPU, the one that a task first ran on; written by that CPU alone. */
struct runqueue_row {
	struct hist wait;
	u64 unmatched; /* a task ran whose wait had not been noted */
	u64 collided;  /* a wait was not noted: all its places were taken */
	u64 negative;  /* ran before it was woken, by the clock */
	struct event_limit limit;
	u64 pad[3];
};

/* A long wait, with the log of the CPU where it was spent. */
struct runqueue_worst {
	struct event event;
	u64 wait_ns;
	u64 cgroup_id;
	u32 pid;
	u32 tgid;
	char comm[16];
	u64 waited_until_ns; /* until it was moved away from waited_cpu, else until it ran */
	u32 waited_cpu;
	u32 pad;
	struct cpu_row cpu; /* of waited_cpu, as it is at the end of the wait */
};
