/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What one CPU does and has done, in time that never counts twice. The other probes build on this row. */
#include "hist.h"
#include "event.h"

/* The latest tasks that ran on a CPU: enough to say who held it during a long wait. A power of two. */
#define CPU_STAYS 32

/* In so long an idle the tick has been off, at 100 Hz as well. */
#define CPU_TICKLESS_NS 10000000

/* One stay of a task on a CPU. It ends where the next one starts. */
struct cpu_stay {
	u64 started_ns;
	u64 softirq_ns; /* the row's softirq_ns and hardirq_ns when the stay began */
	u64 hardirq_ns;
	u32 pid; /* thread id; 0 is the idle task */
	u32 tgid;
	s32 prio; /* as it ended, or began while it lasts: below 0 deadline, to 99 real-time, to 139 ordinary */
	u32 pad;
	char comm[16];
};

/*
 * Written by its own CPU alone. Times are ns, cumulated since attach, of finished stays.
 *
 * A copy is of one moment if both numbers of writes were even and the same before and after: two, because
 * interrupts come while a softirq's handler writes, and what runs with interrupts off is never interrupted.
 */
struct cpu_row {
	u32 writes;         /* with interrupts off: odd while it goes on */
	u32 softirq_writes; /* with interrupts on */
	u64 running_ns;
	u64 idle_ns;
	u64 softirq_ns; /* without the hard interrupts inside */
	u64 hardirq_ns;

	u64 softirq_entered_ns; /* 0: no softirq is open */
	u64 softirq_hardirq_ns; /* hardirq_ns when it was entered */
	u64 hardirq_entered_ns; /* 0: no hard interrupt is open */
	u64 softirq_run_ns;     /* of the softirq that ended last */
	u64 hardirq_run_ns;     /* of the interrupt that ended last */
	u64 hardirq_left_ns;    /* when that was */

	u64 switches;
	u64 negative;    /* differences below zero: not counted anywhere else */
	u64 unmatched;   /* beginnings without an end, ends without a beginning */
	u64 events_lost; /* no room in the ring buffer */

	u32 untraced;          /* set from outside: programs leave this CPU alone */
	u32 softirq_vector;    /* of the open softirq */
	u32 softirq_run_valid; /* the end that was seen last had a beginning */
	u32 hardirq_run_valid;
	u32 first_pid; /* of the task that ran until the first switch, which says so; 0: idle */
	u32 pad;
	u64 waited_ns;     /* by the task that was switched in last; 0: not known */
	u64 idle_until_ns; /* the end of the latest stay of the idle task that was long enough for the tick to stop */

	struct cpu_stay stays[CPU_STAYS]; /* stays[switches % CPU_STAYS] is the running one */
};
