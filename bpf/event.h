/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What every single event in the ring buffer starts with. */
struct event {
	u32 kind; /* one number per event struct, given out by the loader */
	u32 cpu;
	u64 time_ns; /* CLOCK_MONOTONIC */
};

/*
 * Keeps single events rare, per source and CPU: some a second, and beyond those only ever longer ones, so that
 * the worst always gets through.
 */
struct event_limit {
	u64 second;
	u64 sent;       /* in this second */
	u64 longest_ns; /* of those */
	u64 suppressed; /* since attach */
};
