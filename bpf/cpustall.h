/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Why a CPU in kernel mode is held up, rather than at work for a task that nobody waits behind. */
#define CPUSTALL_SOFTIRQ 1
#define CPUSTALL_HARDIRQ 2
#define CPUSTALL_NEED_RESCHED 4 /* another task is due, and the running one does not let it */
#define CPUSTALL_FEED 8         /* the kernel's watchdog waits for its thread */
#define CPUSTALL_PREEMPT_OFF 16
#define CPUSTALL_CLOCK_LATE 32 /* the clock itself came late: interrupts were off, or the guest was paused */

/* One row per CPU, written by that CPU alone. What the hot handlers look at is in the first cache line. */
struct cpustall_row {
	u64 heartbeat_ns;    /* the latest sign that this CPU takes interrupts */
	u64 feed_since_ns;   /* the watchdog woke its thread, which has not run since; 0: fed */
	u64 since_ns;        /* what held the CPU at the latest sample began then; 0: nothing did */
	u64 seen_ns;         /* latest sample that found it so */
	u64 sampled_ns;      /* latest sample */
	u64 switches;        /* the CPU's count at that sample */
	u64 told_ns;         /* latest event */
	u64 need_resched_ns; /* first sample in a row that found it */

	u64 preempt_off_ns;  /* likewise */
	u32 preempt_base;    /* the preemption count as a sample of user mode sees it, plus one; 0: not seen yet */
	u32 preempt_samples; /* in a row with a higher one */
	u64 negative;        /* fed before it was due, by the clock */
	u64 unreadable;      /* samples of kernel mode that could not tell whether another task is due */
	u32 evidence;        /* CPUSTALL_* of the latest sample */
	u32 vector;          /* of the softirq, if that is open */
	u64 fed_ns;          /* the watchdog's thread ran last */
	u64 pad;

	struct hist stall;
	struct hist feed;
	u64 pad2[4];
};

#define CPUSTALL_FRAMES 32

/* A stall past the threshold, still lasting. */
struct cpustall_stalls {
	struct event event;
	u64 duration_ns; /* so far */
	u64 since_ns;
	u64 feed_ns; /* of which the watchdog has been waiting; 0: it is not */
	u32 evidence;
	u32 vector;
	u32 pid;
	u32 tgid;
	char comm[16];
	u32 frames;
	u32 pad;
	u64 stack[CPUSTALL_FRAMES]; /* kernel addresses, innermost first; beyond frames, what older events left */
};
