/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where threads' time goes, and who took it: every thread is running, waiting for a CPU or asleep, and each moment of
 * it belongs to one part.
 *
 * A wait begins with sched_wakeup, when the thread is queued, as the kernel's own account of it (schedstat) does. The
 * scheduler's events of one thread come under the lock of the run queue that it is on or leaves.
 */
#include "foreshock.bpf.h"
#include "ledger.h"
#include "stacks.bpf.h"
#include "switch.bpf.h"
#include "task.bpf.h"

/* Source: include/linux/sched.h, since v4.14. */
#define LEDGER_TASK_UNINTERRUPTIBLE 0x2
#define LEDGER_TASK_STOPPED 0xc
#define LEDGER_TASK_DEAD 0x80
#define LEDGER_TASK_NOLOAD 0x400
#define LEDGER_PF_KTHREAD 0x200000
#define LEDGER_ON_RQ_MIGRATING 2
#define LEDGER_MAX_RT_PRIO 100
/* Source: include/trace/events/lock.h, since v5.19. */
#define LEDGER_LCB_SPIN 0x1
#define LEDGER_LCB_SEMAPHORE (0x2 | 0x4 | 0x10)
#define LEDGER_LCB_RT 0x8
#define LEDGER_LCB_MUTEX 0x20

#define LEDGER_NONE 0xffffffff

MAPPED_ARRAY(ledger_task, ledger_tasks, LEDGER_TASKS);
MAPPED_ARRAY(ledger_cpu, ledger_cpus, NR_CPUS);
MAPPED_ARRAY(ledger_stay, ledger_stays, NR_CPUS * LEDGER_STAYS);
MAPPED_ARRAY(ledger_block, ledger_blocks, NR_CPUS * LEDGER_LOG_BLOCKS);
MAPPED_ARRAY(ledger_old, ledger_olds, NR_CPUS * LEDGER_OLDS);
MAPPED_ARRAY(stack_control, ledger_control, 1);
BPF_HASH(ledger_counts, struct ledger_key, struct ledger_count, LEDGER_KEYS);

helper struct ledger_task *ledger_row(u32 place)
{
	return ledger_tasks.lookup(&place);
}

helper struct ledger_cpu *ledger_cpu_of(u32 cpu)
{
	return ledger_cpus.lookup(&cpu);
}

/* The running thread's row, in interrupts too. */
helper struct ledger_task *ledger_running(struct ledger_cpu *here)
{
	return ledger_row(here->running - 1);
}

helper u32 ledger_place_of(u32 pid)
{
	u32 first = (pid & (LEDGER_SETS - 1)) * LEDGER_WAYS;

#pragma unroll
	for (u32 way = 0; way < LEDGER_WAYS; way++) {
		struct ledger_task *task = ledger_row(first + way);

		if (task && task->pid == pid && task->state != LEDGER_DEAD)
			return first + way;
	}
	return LEDGER_NONE;
}

helper void ledger_write(struct ledger_task *task)
{
	barrier();
	task->writes++;
	barrier();
}

/* People know processes, which are called as their first thread is. */
helper void ledger_name(char *comm, void *thread)
{
	void *leader = read_kernel(thread, void *, TASK_STRUCT__GROUP_LEADER);

	((u64 *)comm)[0] = read_kernel(leader, u64, TASK_STRUCT__COMM);
	((u64 *)comm)[1] = read_kernel(leader, u64, TASK_STRUCT__COMM + 8);
}

helper void ledger_clear(struct ledger_task *task, void *thread, u64 now)
{
	task->tgid = read_kernel(thread, u32, TASK_STRUCT__TGID);
	task->state = 0;
	task->stall = task->lock = task->block = 0;
	task->lock_at = task->irq_base_ns = task->throttle_base_ns = 0;
	task->first_ns = task->since_ns = now;
	task->cgroup_id = task_cgroup_id(thread);
	ledger_name(task->comm, thread);
	task->running_ns = task->waiting_ns = task->throttled_ns = 0;
	task->reclaim_ns = task->compaction_ns = task->stall_asleep_ns = task->unknown_ns = 0;
	task->wait_softirq_ns = task->wait_hardirq_ns = 0;
	task->softirqs_ns = task->hardirq_ns = task->waits = 0;
#pragma unroll
	for (int block = 0; block < LEDGER_BLOCKS; block++)
		task->blocked_ns[block] = 0;
#pragma unroll
	for (int vector = 0; vector < LEDGER_VECTORS; vector++)
		task->softirq_ns[vector] = 0;
}

/*
 * Give a thread a row. Two CPUs may take the same free one at once; the second look makes the loser search on. What is
 * left of that race is the time between two instructions, once in a thread's life.
 */
helper u32 ledger_claim(void *thread, u32 pid, u64 now, struct ledger_cpu *here)
{
	u32 first = (pid & (LEDGER_SETS - 1)) * LEDGER_WAYS;

	if (!task_wanted(thread) || read_kernel(thread, u32, TASK_STRUCT__FLAGS) & LEDGER_PF_KTHREAD)
		return LEDGER_NONE;
#pragma unroll
	for (u32 way = 0; way < LEDGER_WAYS; way++) {
		struct ledger_task *task = ledger_row(first + way);

		if (!task || task->pid)
			continue;
		task->pid = pid;
		barrier();
		if (task->pid != pid)
			continue;
		ledger_write(task);
		ledger_clear(task, thread, now);
		ledger_write(task);
		return first + way;
	}
	here->collided++;
	return LEDGER_NONE;
}

/* Add to what a process lost. Only with interrupts off: a CPU is inside of one half at a time. */
helper void ledger_add(u32 tgid, u32 kind, u64 what, u64 ns, u64 cgroup_id, char *comm, void *name,
		       struct ledger_cpu *here)
{
	struct ledger_key key = {.tgid = tgid, .kind = kind, .what = what};
	struct ledger_count first = {.ns = ns, .count = 1, .cgroup_id = cgroup_id};
	struct ledger_count *count;
	u32 zero = 0;
	struct stack_control *control = ledger_control.lookup(&zero);

	if (!control)
		return;
	key.half = enter_stacks(&here->use, control) & 1;
	count = ledger_counts.lookup(&key);
	if (!count) {
		if (comm) {
			((u64 *)first.comm)[0] = ((u64 *)comm)[0];
			((u64 *)first.comm)[1] = ((u64 *)comm)[1];
		} else if (name) {
			bpf_probe_read_kernel_str(first.comm, sizeof(first.comm), name);
		}
		/* Another CPU may be first: then it is there now. */
		if (!ledger_counts.insert(&key, &first))
			goto out;
		count = ledger_counts.lookup(&key);
		if (!count) {
			here->use.full++;
			here->full_ns += ns;
			goto out;
		}
	}
	/* Threads of one process wait on several CPUs at once. */
	__sync_fetch_and_add(&count->ns, ns);
	__sync_fetch_and_add(&count->count, 1);
out:
	leave_stacks(&here->use);
}

/* Count what it ran since since_ns, without the interrupts inside. */
helper void ledger_settle_run(struct ledger_task *task, u64 now)
{
	u64 irq_ns = task->softirqs_ns + task->hardirq_ns;
	u64 own_ns = now - task->since_ns - (irq_ns - task->irq_base_ns);

	/* An interrupt after now was read is in irq_ns: then this may be below zero, and the next part is longer. */
	if (task->stall == LEDGER_RECLAIM)
		task->reclaim_ns += own_ns;
	else if (task->stall == LEDGER_COMPACTION)
		task->compaction_ns += own_ns;
	else
		task->running_ns += own_ns;
	task->irq_base_ns = irq_ns;
	task->since_ns = now;
}

helper void ledger_settle_block(struct ledger_task *task, u64 now)
{
	u64 asleep_ns = now - task->since_ns;
	u32 block = task->block & (LEDGER_BLOCKS - 1);

	keep(block);
	if (task->stall)
		task->stall_asleep_ns += asleep_ns;
	if (task->stall == LEDGER_RECLAIM)
		task->reclaim_ns += asleep_ns;
	else if (task->stall == LEDGER_COMPACTION)
		task->compaction_ns += asleep_ns;
	else if (block < LEDGER_BLOCKS)
		task->blocked_ns[block] += asleep_ns;
	task->since_ns = now;
}

/*
 * How long the thread's group has been kept from this CPU by its quota, or by that of a group above it: the run queue's
 * own sum, by the run queue's clock. It grows when the group is let go again; open_too adds what goes on.
 */
helper u64 ledger_throttled(void *thread, bool open_too)
{
	u64 ns = 0;
#ifdef CFS_RQ__THROTTLED_CLOCK_SELF_TIME
	void *cfs_rq = read_kernel(thread, void *, TASK_STRUCT__SE__CFS_RQ);

	ns = read_kernel(cfs_rq, u64, CFS_RQ__THROTTLED_CLOCK_SELF_TIME);
	/* Since 677ea015f231 ("sched: add throttled time stat for throttled children") (in v6.6): 0 while it isn't. */
#ifdef CFS_RQ__THROTTLED_CLOCK_SELF
	u64 since = open_too ? read_kernel(cfs_rq, u64, CFS_RQ__THROTTLED_CLOCK_SELF) : 0;

	if (since)
		ns += read_kernel(read_kernel(cfs_rq, void *, CFS_RQ__RQ), u64, RQ__CLOCK) - since;
#endif
#endif
	return ns;
}

/* The same of the run queue on the CPU that a waiting thread is being moved to. */
helper u64 ledger_throttled_on(void *thread, u32 cpu)
{
	u64 ns = 0;
#ifdef CFS_RQ__THROTTLED_CLOCK_SELF_TIME
	void *group = read_kernel(thread, void *, TASK_STRUCT__SCHED_TASK_GROUP);
	u64 at = read_kernel(group, u64, TASK_GROUP__CFS_RQ) + 8 * (u64)cpu;

	if (!bpf_probe_read_kernel(&at, sizeof(at), (void *)at))
		bpf_probe_read_kernel(&ns, sizeof(ns), (void *)(at + CFS_RQ__THROTTLED_CLOCK_SELF_TIME));
#endif
	return ns;
}

helper void ledger_begin_wait(struct ledger_task *task, void *thread, u64 now, u32 cpu)
{
	task->state = LEDGER_WAITING;
	task->since_ns = now;
	task->cpu = cpu;
	task->throttle_base_ns = ledger_throttled(thread, true);
}

/* A wait that is being shared out, from its end to its start. */
struct ledger_rest {
	u64 start_ns;
	u64 end_ns;     /* what comes after is done */
	u64 softirq_ns; /* the CPU's at end_ns */
	u64 hardirq_ns;
};

/*
 * Take off what began at started_ns and lasts until the rest's end: interrupts are counted here, what is left is
 * returned. Of what began before the wait, they are shared in proportion.
 */
helper u64 ledger_take(struct ledger_task *task, struct ledger_rest *rest, u64 started_ns, u64 softirq_ns,
		       u64 hardirq_ns)
{
	u64 length = rest->end_ns - started_ns;
	u64 overlap = started_ns < rest->start_ns ? rest->end_ns - rest->start_ns : length;
	u64 softirq = rest->softirq_ns - softirq_ns;
	u64 hardirq = rest->hardirq_ns - hardirq_ns;

	rest->end_ns = started_ns;
	rest->softirq_ns = softirq_ns;
	rest->hardirq_ns = hardirq_ns;
	if (overlap < length) {
		softirq = softirq * overlap / length;
		hardirq = hardirq * overlap / length;
	}
	if (softirq + hardirq > overlap)
		return overlap;
	task->wait_softirq_ns += softirq;
	task->wait_hardirq_ns += hardirq;
	return overlap - softirq - hardirq;
}

helper struct ledger_stay *ledger_stay_at(u32 cpu, u32 number)
{
	u32 index = cpu * LEDGER_STAYS + (number & (LEDGER_STAYS - 1));

	return ledger_stays.lookup(&index);
}

/* The latest stays, as far back as they are there. */
helper void ledger_blame_stays(struct ledger_task *task, struct ledger_rest *rest, struct ledger_cpu *place,
			       struct ledger_cpu *here)
{
	u32 newest = place->stays_count;

#pragma clang loop unroll(disable)
	for (u32 step = 0; step < LEDGER_STAYS; step++) {
		struct ledger_stay *stay = ledger_stay_at(task->cpu, newest - step);
		u64 own_ns;

		if (!stay || rest->end_ns <= rest->start_ns || !stay->started_ns || stay->started_ns >= rest->end_ns)
			return;
		own_ns = ledger_take(task, rest, stay->started_ns, stay->softirq_ns, stay->hardirq_ns);
		ledger_add(task->tgid, LEDGER_HOLDER, stay->tgid, own_ns, stay->cgroup_id, stay->comm, NULL, here);
	}
}

/* Share out the last wait_ns before now among those who had the CPU there. */
helper void ledger_blame(struct ledger_task *task, u64 wait_ns, u64 now, struct ledger_cpu *place, struct cpu_row *row,
			 struct ledger_cpu *here)
{
	struct ledger_rest rest = {now - wait_ns, now, row->softirq_ns, row->hardirq_ns};
	u32 index = bpf_get_smp_processor_id() * LEDGER_OLDS + (here->olds_count & (LEDGER_OLDS - 1));
	struct ledger_old *old = ledger_olds.lookup(&index);

	ledger_blame_stays(task, &rest, place, here);
	if (rest.end_ns <= rest.start_ns || !old)
		return;
	old->start_ns = rest.start_ns;
	old->end_ns = rest.end_ns;
	old->tgid = task->tgid;
	old->cpu = task->cpu;
	here->olds_ns += rest.end_ns - rest.start_ns;
	barrier();
	here->olds_count++;
}

/* End a wait on a CPU, or its part there: what the quota took, then who had the CPU in the rest. */
helper void ledger_end_wait(struct ledger_task *task, void *thread, u64 now, struct ledger_cpu *here)
{
	u64 wait_ns = now - task->since_ns;
	s64 throttled_ns = ledger_throttled(thread, false) - task->throttle_base_ns;
	u32 cpu = task->cpu;
	struct ledger_cpu *place = ledger_cpu_of(cpu);
	struct cpu_row *row = cpus.lookup(&cpu);

	/* Clocks of two CPUs: it waited no time. */
	if ((s64)wait_ns < 0)
		wait_ns = 0;
	/* Real-time tasks have no part in it. */
	if (throttled_ns < 0 || read_kernel(thread, s32, TASK_STRUCT__PRIO) < LEDGER_MAX_RT_PRIO)
		throttled_ns = 0;
	if (throttled_ns > (s64)wait_ns)
		throttled_ns = wait_ns;
	task->throttled_ns += throttled_ns;
	wait_ns -= throttled_ns;
	task->waiting_ns += wait_ns;
	if (place && row && wait_ns)
		ledger_blame(task, wait_ns, now, place, row, here);
}

helper u32 ledger_block_of(struct ledger_task *task, void *thread, u32 state)
{
	if (task->lock)
		return task->lock;
#ifdef TASK_STRUCT__IN_IOWAIT
	if (read_kernel(thread, u8, TASK_STRUCT__IN_IOWAIT) >> TASK_STRUCT__IN_IOWAIT__BIT & 1)
		return LEDGER_DISK;
#endif
	if (state & LEDGER_TASK_STOPPED)
		return LEDGER_STOPPED;
	if ((state & (LEDGER_TASK_UNINTERRUPTIBLE | LEDGER_TASK_NOLOAD)) == LEDGER_TASK_UNINTERRUPTIBLE)
		return LEDGER_UNINTERRUPTIBLE;
	return LEDGER_SLEEP;
}

helper void ledger_leave(u64 *ctx, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here)
{
	void *thread = (void *)ctx[1];
	struct ledger_task *task = ledger_running(here);
	u32 place;

	here->running = 0;
	if (!task || task->pid != pid || task->state == LEDGER_DEAD) {
		place = ledger_place_of(pid);
		if (place == LEDGER_NONE)
			place = ledger_claim(thread, pid, now, here);
		task = ledger_row(place);
		if (!task)
			return;
	}
	ledger_write(task);
	if (task->state == LEDGER_RUNNING)
		ledger_settle_run(task, now);
	else
		task->unknown_ns += now - task->since_ns;
	if (switched_out_runnable(ctx)) {
		ledger_begin_wait(task, thread, now, cpu);
	} else if (switched_out_state(ctx) & LEDGER_TASK_DEAD) {
		task->state = LEDGER_DEAD;
	} else {
		task->state = LEDGER_BLOCKED;
		task->block = ledger_block_of(task, thread, switched_out_state(ctx));
	}
	task->since_ns = now;
	ledger_write(task);
}

helper void ledger_enter(void *thread, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here)
{
	u32 place = ledger_place_of(pid);
	struct ledger_task *task;

	if (place == LEDGER_NONE)
		place = ledger_claim(thread, pid, now, here);
	task = ledger_row(place);
	if (!task)
		return;
	ledger_write(task);
	if (task->state == LEDGER_WAITING) {
		ledger_end_wait(task, thread, now, here);
		task->waits++;
	} else if (task->state) {
		here->unmatched++;
		task->unknown_ns += now - task->since_ns;
	}
	task->state = LEDGER_RUNNING;
	task->since_ns = now;
	task->irq_base_ns = task->softirqs_ns + task->hardirq_ns;
	task->cpu = cpu;
	task->cgroup_id = task_cgroup_id(thread);
	ledger_name(task->comm, thread);
	ledger_write(task);
	here->running = place + 1;
}

/* Add a stay to the block that is being filled, under its process. */
helper void ledger_fill_block(struct ledger_block *block, struct ledger_stay *stay, u64 own_ns)
{
#pragma unroll
	for (int index = 0; index < LEDGER_PARTS; index++) {
		struct ledger_part *part = &block->parts[index];

		if (part->used && part->tgid == stay->tgid) {
			part->ns += own_ns;
			return;
		}
		if (!part->used) {
			part->used = 1;
			part->tgid = stay->tgid;
			part->cgroup_id = stay->cgroup_id;
			((u64 *)part->comm)[0] = ((u64 *)stay->comm)[0];
			((u64 *)part->comm)[1] = ((u64 *)stay->comm)[1];
			part->ns = own_ns;
			return;
		}
	}
	block->other_ns += own_ns;
}

helper struct ledger_block *ledger_block_at(u32 cpu, u32 number)
{
	u32 index = cpu * LEDGER_LOG_BLOCKS + (number & (LEDGER_LOG_BLOCKS - 1));

	return ledger_blocks.lookup(&index);
}

/* Count the stay that ends now in the block that is being filled, and begin another one when that is large enough. */
helper void ledger_end_stay(struct ledger_stay *ended, u64 now, u32 cpu, struct ledger_cpu *here, struct cpu_row *row)
{
	struct ledger_block *block = ledger_block_at(cpu, here->blocks_count);
	u64 interrupted_ns = row->softirq_ns - ended->softirq_ns + row->hardirq_ns - ended->hardirq_ns;

	if (!block || !ended->started_ns)
		return;
	ledger_fill_block(block, ended, now - ended->started_ns - interrupted_ns);
	if (++here->block_stays < LEDGER_BLOCK_STAYS || now - block->started_ns < LEDGER_BLOCK_NS)
		return;
	here->block_stays = 0;
	block = ledger_block_at(cpu, here->blocks_count + 1);
	if (!block)
		return;
	block->started_ns = now;
	block->softirq_ns = row->softirq_ns;
	block->hardirq_ns = row->hardirq_ns;
	block->other_ns = 0;
#pragma unroll
	for (int index = 0; index < LEDGER_PARTS; index++)
		block->parts[index].used = 0;
	barrier();
	here->blocks_count++;
}

/* Note who runs from now on. */
helper void ledger_push_stay(void *thread, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here, struct cpu_row *row)
{
	struct ledger_stay *ended = ledger_stay_at(cpu, here->stays_count);
	struct ledger_stay *stay = ledger_stay_at(cpu, here->stays_count + 1);

	if (!ended || !stay)
		return;
	ledger_end_stay(ended, now, cpu, here, row);
	stay->started_ns = now;
	stay->softirq_ns = row->softirq_ns;
	stay->hardirq_ns = row->hardirq_ns;
	stay->cgroup_id = pid ? task_cgroup_id(thread) : 0;
	stay->tgid = pid ? read_kernel(thread, u32, TASK_STRUCT__TGID) : 0;
	ledger_name(stay->comm, thread);
	here->stays_count++;
}

handler ledger_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 prev_pid = read_kernel(ctx[1], u32, TASK_STRUCT__PID);
	u32 next_pid = read_kernel(ctx[2], u32, TASK_STRUCT__PID);
	struct ledger_cpu *here = ledger_cpu_of(cpu);

	if (!here)
		return;
	if (prev_pid)
		ledger_leave(ctx, prev_pid, now, cpu, here);
	else
		here->running = 0;
	/* A switch that was not shown: another task leaves than came. How long each was there is not known. */
	if (next_pid)
		ledger_enter((void *)ctx[2], next_pid, now, cpu, here);
	ledger_push_stay((void *)ctx[2], next_pid, now, cpu, here, row);
}

/* A thread is queued. One that was not asleep is only told to go on. */
handler ledger_on_sched_wakeup(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *thread = (void *)ctx[0];
	u32 pid = read_kernel(thread, u32, TASK_STRUCT__PID), place;
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task;

	if (!here || !pid)
		return;
	place = ledger_place_of(pid);
	/* One that has slept since before the start. */
	if (place == LEDGER_NONE && !read_kernel(thread, u32, TASK_STRUCT__ON_CPU))
		place = ledger_claim(thread, pid, now, here);
	task = ledger_row(place);
	if (!task || (task->state && task->state != LEDGER_BLOCKED))
		return;
	ledger_write(task);
	if (task->state)
		ledger_settle_block(task, now);
	ledger_begin_wait(task, thread, now, read_kernel(thread, u32, TASK_STRUCT__CPU));
	ledger_write(task);
}

handler ledger_on_sched_wakeup_new(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *thread = (void *)ctx[0];
	u32 pid = read_kernel(thread, u32, TASK_STRUCT__PID);
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task;

	if (!here)
		return;
	task = ledger_row(ledger_claim(thread, pid, now, here));
	if (!task)
		return;
	ledger_write(task);
	ledger_begin_wait(task, thread, now, read_kernel(thread, u32, TASK_STRUCT__CPU));
	ledger_write(task);
}

/* The wait so far belongs to the CPU that the thread is taken from. */
handler ledger_on_sched_migrate_task(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *thread = (void *)ctx[0];
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task;

	if (!here || read_kernel(thread, u32, TASK_STRUCT__ON_RQ) != LEDGER_ON_RQ_MIGRATING)
		return;
	task = ledger_row(ledger_place_of(read_kernel(thread, u32, TASK_STRUCT__PID)));
	if (!task || task->state != LEDGER_WAITING)
		return;
	ledger_write(task);
	ledger_end_wait(task, thread, now, here);
	task->since_ns = now;
	task->cpu = ctx[1];
	task->throttle_base_ns = ledger_throttled_on(thread, ctx[1]);
	ledger_write(task);
}

handler ledger_on_softirq_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task;
	u32 vector = ctx[0];

	if (!here || !row->softirq_run_valid)
		return;
	task = ledger_running(here);
	if (!task || vector >= LEDGER_VECTORS)
		return;
	task->softirqs_ns += row->softirq_run_ns;
	task->softirq_ns[vector] += row->softirq_run_ns;
}

helper void ledger_interrupted(u32 cpu, struct cpu_row *row, u32 kind, u32 number, void *name)
{
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task;

	if (!here || !row->hardirq_run_valid)
		return;
	task = ledger_running(here);
	if (!task)
		return;
	task->hardirq_ns += row->hardirq_run_ns;
	ledger_add(task->tgid, kind, number, row->hardirq_run_ns, 0, NULL, name, here);
}

handler ledger_on_irq_handler_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_interrupted(cpu, row, LEDGER_LINE, ctx[0], (void *)read_kernel(ctx[1], u64, IRQACTION__NAME));
}

handler ledger_on_vector_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_interrupted(cpu, row, LEDGER_VECTOR, ctx[0], NULL);
}

helper void ledger_set_stall(u32 cpu, u64 now, u32 stall)
{
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task = here ? ledger_running(here) : NULL;

	if (!task)
		return;
	ledger_write(task);
	ledger_settle_run(task, now);
	task->stall = stall;
	ledger_write(task);
}

handler ledger_on_mm_vmscan_direct_reclaim_begin(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, LEDGER_RECLAIM);
}

handler ledger_on_mm_vmscan_direct_reclaim_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, 0);
}

handler ledger_on_mm_vmscan_memcg_reclaim_begin(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, LEDGER_RECLAIM);
}

handler ledger_on_mm_vmscan_memcg_reclaim_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, 0);
}

handler ledger_on_mm_compaction_begin(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, LEDGER_COMPACTION);
}

handler ledger_on_mm_compaction_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	ledger_set_stall(cpu, now, 0);
}

/* Locks that are slept for. Those that spin in interrupts, or inside of another one's slow path, are left out. */
handler ledger_on_contention_begin(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task = here ? ledger_running(here) : NULL;
	u32 flags = ctx[1], lock;

	if (flags & LEDGER_LCB_MUTEX)
		lock = LEDGER_MUTEX;
	else if (flags & LEDGER_LCB_SPIN)
		return;
	else if (flags & LEDGER_LCB_SEMAPHORE)
		lock = LEDGER_RWSEM;
	else if (flags & LEDGER_LCB_RT)
		lock = LEDGER_RTLOCK;
	else
		return;
	if (!task)
		return;
	task->lock_at = ctx[0];
	task->lock = lock;
}

handler ledger_on_contention_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct ledger_cpu *here = ledger_cpu_of(cpu);
	struct ledger_task *task = here ? ledger_running(here) : NULL;

	if (task && task->lock_at == ctx[0])
		task->lock = 0;
}
