/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the probes that take stacks share with their reader (tracer/kernel/readers/stacks.py).
 *
 * Stack ids and counts come in two halves, one of which programs fill while the other is read and emptied. The
 * generation says which: half = generation & 1. A program says which one it is inside of, so that the reader knows
 * when nobody is left in the half that it's about to empty.
 */

/* Frames kept of a stack: the kernel's own default limit (kernel.perf_event_max_stack). */
#define STACK_DEPTH 127

/*
 * A stack map has one place for each hash. Of two stacks with the same one, the second goes to a smaller map of its
 * own, where there is room unless a third comes. Added to the ids from there:
 */
#define STACK_SPILLED 16777216
#define STACK_SPILL_SHARE 4

struct stack_frames {
	u64 address[STACK_DEPTH];
};

/* Set from outside, on a cache line of its own. */
struct stack_control {
	u32 generation;
	u32 pad[15];
};

/* One per CPU: 0 outside, STACK_ENTERING, or the generation + STACK_INSIDE. */
#define STACK_ENTERING 1
#define STACK_INSIDE 2

struct stack_use {
	u64 inside;
	u64 collided; /* no stack: others had its places in both maps */
	u64 missed;   /* no stack: the kernel had none to give */
	u64 full;     /* not counted at all: no room left for its key */
};
