/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Works that wait for a worker, by a hash of their address. A power of two. */
#define WORKQUEUE_PLACES 16384
#define WORKQUEUE_PLACE_BITS 14

/* Written by the CPU that queues the work: a work is queued once at a time. */
struct workqueue_queued {
	u64 number; /* made from the work's address; 0: free */
	u64 queued_ns;
};

/* Workers at work, by pid. Two places for each. A power of two. */
#define WORKQUEUE_WORKERS 4096

/* Written by the worker itself. */
struct workqueue_running {
	u64 started_ns; /* 0: not at work */
	u64 function;   /* address of the work's function */
	u32 pid;
	u32 cpu; /* where it began */
	u64 pad;
};

/* Worker pools seen on a CPU: two bound ones, two for softirqs, a share of the unbound ones. A power of two. */
#define WORKQUEUE_POOLS 8

/* What the kernel's own watchdog looks at. Written by the clocks of two CPUs, which see the same. */
struct workqueue_pool {
	u64 address;  /* of struct worker_pool; 0: free */
	u64 progress; /* the pool's watchdog_ts when it was looked at last */
	u64 since_ns; /* works wait, and none was begun, since then; 0: none waits */
	u64 function; /* of the work that waits longest */
	s32 cpu;      /* -1: unbound */
	s32 id;
	u64 pad[3];
};

/* One row per CPU, written by that CPU alone. */
struct workqueue_row {
	struct hist delay; /* from the queueing of a work to its start, by the CPU it starts on */
	struct hist run;   /* of a work, with its sleeps, by the CPU it ends on */
	struct event_limit delay_limit;
	struct event_limit run_limit;
	u64 unqueued;  /* works that began without having been queued: barriers of flush_work(), or not seen */
	u64 unmatched; /* works whose start was not seen */
	u64 collided;  /* works, or pools, without a place */
	u64 negative;
};

#define WORKQUEUE_WORST_DELAY 1
#define WORKQUEUE_WORST_RUN 2

/* A work that began late or ran long. */
struct workqueue_worst {
	struct event event;
	u64 duration_ns;
	u64 function;
	u32 kind; /* WORKQUEUE_WORST_* */
	u32 pid;  /* of the worker */
	char comm[16];
};
