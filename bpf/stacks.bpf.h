/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Stacks into one of two halves, see stacks.h. Callers name the maps, since bcc rewrites calls on names only. */
#include "stacks.h"

#define STACK_TRACES(name, size) BPF_TABLE("stacktrace", int, struct stack_frames, name, size)

#define USER_STACK (1ULL << 8)
#define EEXIST 17

#define NO_STACK -1

/* Take the half that is being filled. Until leave_stacks, the reader leaves it alone. */
helper u32 enter_stacks(struct stack_use *use, struct stack_control *control)
{
	u32 generation;

	*(volatile u64 *)&use->inside = STACK_ENTERING;
	barrier();
	generation = *(volatile u32 *)&control->generation;
	*(volatile u64 *)&use->inside = (u64)generation + STACK_INSIDE;
	barrier();
	return generation;
}

helper void leave_stacks(struct stack_use *use)
{
	barrier();
	*(volatile u64 *)&use->inside = 0;
}

/*
 * Tell stacks that aren't there from lost ones. A kernel thread has no user stack, code in user mode no kernel stack:
 * either alone is -EFAULT and as it should be.
 */
helper void count_missing(struct stack_use *use, s64 kernel, s64 user)
{
	if (kernel == -EEXIST || user == -EEXIST)
		use->collided++;
	else if (kernel < 0 && user < 0)
		use->missed++;
}
