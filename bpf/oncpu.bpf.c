/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What CPUs execute: the stacks that a clock finds, counted by CPU and task. */
#include "foreshock.bpf.h"
#include "oncpu.h"
#include "stacks.bpf.h"

MAPPED_ARRAY(oncpu_row, oncpu_rows, NR_CPUS);
MAPPED_ARRAY(stack_control, oncpu_control, 1);
BPF_HASH(oncpu_counts_0, struct oncpu_key, struct oncpu_count, ONCPU_KEYS);
BPF_HASH(oncpu_counts_1, struct oncpu_key, struct oncpu_count, ONCPU_KEYS);
STACK_TRACES(oncpu_stacks_0, ONCPU_STACKS);
STACK_TRACES(oncpu_stacks_1, ONCPU_STACKS);
STACK_TRACES(oncpu_spill_0, ONCPU_STACKS / STACK_SPILL_SHARE);
STACK_TRACES(oncpu_spill_1, ONCPU_STACKS / STACK_SPILL_SHARE);

helper s32 oncpu_stack(u64 *ctx, u32 generation, u64 flags)
{
	s64 id;

	id = generation & 1 ? oncpu_stacks_1.get_stackid(ctx, flags) : oncpu_stacks_0.get_stackid(ctx, flags);
	if (id != -EEXIST)
		return id;
	id = generation & 1 ? oncpu_spill_1.get_stackid(ctx, flags) : oncpu_spill_0.get_stackid(ctx, flags);
	return id < 0 ? id : id + STACK_SPILLED;
}

#ifdef FILTER_CGROUP
/* A program on a clock may not follow pointers itself, as others do (see task.bpf.h). */
helper u64 follow(u64 pointer, u32 offset)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)(pointer + offset));
	return value;
}

helper u64 oncpu_cgroup_id(void)
{
	u64 css_set = follow(bpf_get_current_task(), TASK_STRUCT__CGROUPS);
#ifdef CGROUP_V1
	u64 cgroup = follow(follow(css_set, CSS_SET__SUBSYS + 8 * CPU_CGRP_ID), CGROUP_SUBSYS_STATE__CGROUP);
	u64 id = follow(follow(cgroup, CGROUP__KN), KERNFS_NODE__ID);

#ifdef CGROUP_OF_V2
	if (id == CGROUP_ROOT_ID)
		id = CGROUP_OF_V2 | follow(follow(follow(css_set, CSS_SET__DFL_CGRP), CGROUP__KN), KERNFS_NODE__ID);
#endif
	return id;
#else
	return follow(follow(follow(css_set, CSS_SET__DFL_CGRP), CGROUP__KN), KERNFS_NODE__ID);
#endif
}
#endif

helper bool oncpu_wanted(u32 tgid)
{
#ifdef FILTER_TGID
	if (tgid != FILTER_TGID)
		return false;
#endif
#ifdef FILTER_CGROUP
	if (oncpu_cgroup_id() != FILTER_CGROUP)
		return false;
#endif
	return true;
}

helper struct oncpu_count *oncpu_count_of(u32 generation, struct oncpu_key *key)
{
	return generation & 1 ? oncpu_counts_1.lookup(key) : oncpu_counts_0.lookup(key);
}

helper void oncpu_add(u32 generation, struct oncpu_key *key, u64 now, struct stack_use *use)
{
	struct oncpu_count *count = oncpu_count_of(generation, key);
	struct oncpu_count first = {.weight = 1, .first_ns = now};
	int error;

	/* The key has the CPU in it, so nobody else adds to this count. */
	if (count) {
		count->weight++;
		return;
	}
	if (generation & 1)
		error = oncpu_counts_1.update(key, &first);
	else
		error = oncpu_counts_0.update(key, &first);
	if (error)
		use->full++;
}

handler oncpu_on_clock(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct oncpu_row *oncpu = oncpu_rows.lookup(&cpu);
	struct oncpu_key key = {.cpu = cpu, .tgid = pid_tgid >> 32, .tid = pid_tgid};
	u32 zero = 0, generation;
	struct stack_control *control = oncpu_control.lookup(&zero);

	if (!oncpu || !control)
		return;
	if (!key.tid) {
		oncpu->idle++;
		return;
	}
	oncpu->busy++;
	if (!oncpu_wanted(key.tgid))
		return;
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	generation = enter_stacks(&oncpu->use, control);
	key.kernel_stack = oncpu_stack(ctx, generation, 0);
	key.user_stack = oncpu_stack(ctx, generation, USER_STACK);
	count_missing(&oncpu->use, key.kernel_stack, key.user_stack);
	oncpu_add(generation, &key, now, &oncpu->use);
	leave_stacks(&oncpu->use);
}
