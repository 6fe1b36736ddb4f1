/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Since when tasks are in uninterruptible sleep: what the kernel's hung task detector waits for.
 *
 * A word is written when a task goes to sleep so and taken away when it is woken. Both are rare beside other sleeps,
 * which cost a look at one number. User space reads the words, and asks /proc about those that have become old.
 */
#include "foreshock.bpf.h"
#include "hung.h"
#include "switch.bpf.h"

#define HUNG_TIME_MASK ((1ULL << HUNG_TIME_BITS) - 1)
/* Source: include/linux/sched.h, since v4.14. */
#define HUNG_UNINTERRUPTIBLE 0x2
#define HUNG_WAKEKILL 0x100
#define HUNG_NOLOAD 0x400 /* idle workers: no load, and nothing that anybody waits for */

MAPPED_ARRAY(hung_row, hung_rows, NR_CPUS);
MAPPED_ARRAY(hung_set, hung_sets, HUNG_SETS);

helper bool hung_state(u32 state)
{
	return (state & (HUNG_UNINTERRUPTIBLE | HUNG_NOLOAD)) == HUNG_UNINTERRUPTIBLE;
}

helper u64 hung_tag(u32 pid)
{
	return (u64)((pid >> HUNG_SET_BITS) + 1) << HUNG_TAG_BITS;
}

helper bool hung_is_of(u64 word, u64 tag)
{
	return word >> HUNG_TAG_BITS << HUNG_TAG_BITS == tag;
}

helper struct hung_set *hung_set_of(u32 pid)
{
	u32 index = pid & (HUNG_SETS - 1);

	return hung_sets.lookup(&index);
}

/* In the task's own place, if an older word has been left there, else in a free one. */
helper void hung_note(struct hung_set *set, u64 tag, u64 word, struct hung_row *hung)
{
#pragma unroll
	for (int way = 0; way < HUNG_WAYS; way++) {
		if (hung_is_of(set->ways[way], tag)) {
			set->ways[way] = word;
			return;
		}
	}
#pragma unroll
	for (int way = 0; way < HUNG_WAYS; way++) {
		if (!set->ways[way]) {
			set->ways[way] = word;
			return;
		}
	}
	hung->collided++;
}

handler hung_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 state = switched_out_state(ctx);
	u64 killable = state & HUNG_WAKEKILL ? 1ULL << HUNG_KILLABLE_BIT : 0;
	struct hung_set *set;
	struct hung_row *hung;
	u32 pid;

	/* Preempted on its way to sleep: it will be back. */
	if (!hung_state(state) || ctx[0] & 1)
		return;
	pid = read_kernel(ctx[1], u32, TASK_STRUCT__PID);
	set = hung_set_of(pid);
	hung = hung_rows.lookup(&cpu);
	if (!set || !hung)
		return;
	hung->blocks++;
	hung_note(set, hung_tag(pid), hung_tag(pid) | killable | (now & HUNG_TIME_MASK), hung);
}

/* The task's state is still that of its sleep. It may be asleep for somebody else's lock only on PREEMPT_RT. */
handler hung_on_sched_waking(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *task = (void *)ctx[0];
	struct hung_set *set;
	u32 pid;

	if (!hung_state(read_kernel(task, u32, TASK_STRUCT__STATE)))
		return;
	pid = read_kernel(task, u32, TASK_STRUCT__PID);
	set = hung_set_of(pid);
	if (!set)
		return;
#pragma unroll
	for (int way = 0; way < HUNG_WAYS; way++)
		if (hung_is_of(set->ways[way], hung_tag(pid)))
			set->ways[way] = 0;
}
