/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* HI, TIMER, NET_TX, NET_RX, BLOCK, IRQ_POLL, TASKLET, SCHED, HRTIMER, RCU: the same ten since 2.6.38. */
#define SOFTIRQ_VECTORS 10

struct softirq_raise {
	u64 at_ns;      /* 0: none */
	u64 softirq_ns; /* the CPU's cumulated times then */
	u64 hardirq_ns;
};

/* One row per CPU and vector, written by that CPU alone. */
struct softirq_row {
	struct hist delay;           /* from the first raise to the entry that serves it */
	struct hist run;             /* without the hard interrupts inside */
	struct softirq_raise raised; /* the oldest that is not served */
	struct softirq_raise again;  /* the latest that found it raised */
	u64 served_ns;               /* the raise that the latest entry served */
	u64 unraised;                /* entered, and no raise was shown */
	u64 negative;
	struct event_limit delay_limit;
	struct event_limit run_limit;
	u64 pad[3];
};

#define SOFTIRQ_WORST_DELAY 1
#define SOFTIRQ_WORST_RUN 2

/* A softirq that came late or ran long, with the log of its CPU. */
struct softirq_worst {
	struct event event;
	u64 duration_ns;
	u64 softirq_ns; /* of the delay: spent in other softirqs */
	u64 hardirq_ns; /* of the delay, or inside the run: spent in hard interrupts */
	u32 kind;       /* SOFTIRQ_WORST_* */
	u32 vector;
	struct cpu_row cpu;
};
