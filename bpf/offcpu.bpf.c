/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where tasks block and for how long: from the switch away until the task runs again.
 *
 * The stack has to be taken when the task blocks, since the end of the block is seen from the task before it, and
 * costs more than all the rest. A task whose blocks are all short has it taken at random, OFFCPU_SAMPLE to one.
 */
#include "foreshock.bpf.h"
#include "offcpu.h"
#include "stacks.bpf.h"
#include "task.bpf.h"

#define OFFCPU_TASK_DEAD 0x80

MAPPED_ARRAY(offcpu_row, offcpu_rows, NR_CPUS);
MAPPED_ARRAY(stack_control, offcpu_control, 1);
BPF_HASH(offcpu_tasks, u32, struct offcpu_task, OFFCPU_TASKS);
BPF_HASH(offcpu_counts_0, struct offcpu_key, struct offcpu_count, OFFCPU_KEYS);
BPF_HASH(offcpu_counts_1, struct offcpu_key, struct offcpu_count, OFFCPU_KEYS);
STACK_TRACES(offcpu_stacks_0, OFFCPU_STACKS);
STACK_TRACES(offcpu_stacks_1, OFFCPU_STACKS);
STACK_TRACES(offcpu_spill_0, OFFCPU_STACKS / STACK_SPILL_SHARE);
STACK_TRACES(offcpu_spill_1, OFFCPU_STACKS / STACK_SPILL_SHARE);

helper s32 offcpu_stack(u64 *ctx, u32 generation, u64 flags)
{
	s64 id;

	id = generation & 1 ? offcpu_stacks_1.get_stackid(ctx, flags) : offcpu_stacks_0.get_stackid(ctx, flags);
	if (id != -EEXIST)
		return id;
	id = generation & 1 ? offcpu_spill_1.get_stackid(ctx, flags) : offcpu_spill_0.get_stackid(ctx, flags);
	return id < 0 ? id : id + STACK_SPILLED;
}

helper struct offcpu_task *offcpu_task_of(u32 pid, struct offcpu_row *offcpu)
{
	struct offcpu_task *task = offcpu_tasks.lookup(&pid);
	struct offcpu_task fresh = {};

	if (task)
		return task;
	if (offcpu_tasks.update(&pid, &fresh)) {
		offcpu->full_tasks++;
		return NULL;
	}
	return offcpu_tasks.lookup(&pid);
}

helper void take_stacks(u64 *ctx, struct offcpu_task *task, struct stack_use *use, struct stack_control *control)
{
	u32 generation = enter_stacks(use, control);

	task->kernel_stack = offcpu_stack(ctx, generation, 0);
	task->user_stack = offcpu_stack(ctx, generation, USER_STACK);
	task->generation = generation;
	leave_stacks(use);
	count_missing(use, task->kernel_stack, task->user_stack);
}

helper void begin_block(u64 *ctx, u32 pid, u32 state, u64 now, u32 cpu, struct offcpu_row *offcpu,
			struct stack_control *control)
{
	struct offcpu_task *task = offcpu_task_of(pid, offcpu);

	if (!task)
		return;
	task->state = state & OFFCPU_STATES;
	task->cpu = cpu;
	if (task->shorts < OFFCPU_SHORTS || !(bpf_get_prandom_u32() & (OFFCPU_SAMPLE - 1))) {
		take_stacks(ctx, task, &offcpu->use, control);
	} else {
		task->kernel_stack = OFFCPU_NOT_TAKEN;
		task->user_stack = OFFCPU_NOT_TAKEN;
	}
	__builtin_memset(&task->waker, 0, sizeof(task->waker));
	barrier();
	task->blocked_ns = now;
}

helper struct offcpu_count *offcpu_count_of(u32 generation, struct offcpu_key *key)
{
	return generation & 1 ? offcpu_counts_1.lookup(key) : offcpu_counts_0.lookup(key);
}

helper void offcpu_add(u32 generation, struct offcpu_key *key, u64 off_ns, u64 blocked_ns, struct stack_use *use)
{
	struct offcpu_count *count = offcpu_count_of(generation, key);
	struct offcpu_count first = {.weight = off_ns, .first_ns = blocked_ns, .count = 1};
	int error;

	/* The key has the task in it, and only the CPU that it's switched in on adds to the count. */
	if (count) {
		count->weight += off_ns;
		count->count++;
		return;
	}
	if (generation & 1)
		error = offcpu_counts_1.update(key, &first);
	else
		error = offcpu_counts_0.update(key, &first);
	if (error)
		use->full++;
}

helper void end_block(void *next, u32 pid, u64 now, struct offcpu_row *offcpu, struct stack_control *control)
{
	struct offcpu_task *task = offcpu_tasks.lookup(&pid);
	struct offcpu_key key = {.tid = pid};
	u64 off_ns, comm[2];

	if (!task || !task->blocked_ns)
		return;
	off_ns = now - task->blocked_ns;
	if ((s64)off_ns < 0) {
		offcpu->negative++;
	} else if (off_ns < OFFCPU_MINIMUM_NS) {
		task->shorts++;
		offcpu->short_blocks++;
		offcpu->short_ns += off_ns;
	} else {
		task->shorts = 0;
		key.cpu = task->cpu;
		key.tgid = read_kernel(next, u32, TASK_STRUCT__TGID);
		key.state = task->state;
		key.kernel_stack = task->kernel_stack;
		key.user_stack = task->user_stack;
		key.generation = task->generation;
		key.waker = task->waker;
		comm[0] = read_kernel(next, u64, TASK_STRUCT__COMM);
		comm[1] = read_kernel(next, u64, TASK_STRUCT__COMM + 8);
		__builtin_memcpy(key.comm, comm, sizeof(key.comm));
		offcpu_add(enter_stacks(&offcpu->use, control), &key, off_ns, task->blocked_ns, &offcpu->use);
		leave_stacks(&offcpu->use);
	}
	/* Last: until now the reader keeps the stacks of this block. */
	barrier();
	task->blocked_ns = 0;
}

/* What is short until here may still become long: the task has to wait for a CPU. */
handler offcpu_on_sched_waking(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 pid = read_kernel(ctx[0], u32, TASK_STRUCT__PID);
	struct offcpu_task *task = offcpu_tasks.lookup(&pid);

	if (!task || !task->blocked_ns)
		return;
	if (row->hardirq_entered_ns) {
		task->waker.kind = OFFCPU_BY_HARDIRQ;
	} else if (row->softirq_entered_ns) {
		task->waker.kind = OFFCPU_BY_SOFTIRQ | row->softirq_vector << OFFCPU_VECTOR_SHIFT;
	} else {
		bpf_get_current_comm(task->waker.comm, sizeof(task->waker.comm));
		task->waker.kind = OFFCPU_BY_TASK;
	}
}

handler offcpu_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 prev_pid = read_kernel(prev, u32, TASK_STRUCT__PID);
	u32 next_pid = read_kernel(next, u32, TASK_STRUCT__PID);
	struct offcpu_row *offcpu = offcpu_rows.lookup(&cpu);
	u32 zero = 0;
	struct stack_control *control = offcpu_control.lookup(&zero);
#if SCHED_SWITCH__ARGS > 3
	/* Since fa2c3254d7cf ("sched/tracing: Don't re-read p->state when emitting sched_switch event") (in v5.18). */
	u32 prev_state = ctx[3];
#else
	u32 prev_state = read_kernel(prev, u32, TASK_STRUCT__STATE);
#endif

	if (!offcpu || !control)
		return;
	if (prev_pid && prev_state & OFFCPU_TASK_DEAD)
		offcpu_tasks.delete(&prev_pid);
	else if (prev_pid && prev_state && !(ctx[0] & 1) && !row->untraced && task_wanted(prev))
		begin_block(ctx, prev_pid, prev_state, now, cpu, offcpu, control);
	if (next_pid)
		end_block(next, next_pid, now, offcpu, control);
}
