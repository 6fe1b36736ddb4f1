/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where threads' time goes, and who took it: every thread is running, waiting for a CPU or asleep, and each moment of
 * it belongs to one part.
 *
 * A wait begins with sched_wakeup, when the thread is queued, as the kernel's own account of it (schedstat) does. The
 * scheduler's events of one thread come under the lock of the run queue that it is on or leaves.
 */
#include "foreshock.bpf.h"
#include "ledger_account.bpf.h"
#include "switch.bpf.h"

/* Source: include/linux/sched.h, since v4.14. */
#define LEDGER_TASK_DEAD 0x80
#define LEDGER_ON_RQ_MIGRATING 2
/* Source: include/trace/events/lock.h, since v5.19. */
#define LEDGER_LCB_SPIN 0x1
#define LEDGER_LCB_SEMAPHORE (0x2 | 0x4 | 0x10)
#define LEDGER_LCB_RT 0x8
#define LEDGER_LCB_MUTEX 0x20

helper void ledger_leave(u64 *ctx, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here)
{
	void *thread = (void *)ctx[1];
	struct ledger_task *task = ledger_running(here);

	here->running = 0;
	if (!task || task->pid != pid || task->state == LEDGER_DEAD) {
		task = ledger_row(ledger_place(thread, pid, now, here));
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
		task->block = ledger_block_of(task, thread, switched_out_state(ctx), now);
	}
	task->since_ns = now;
	ledger_write(task);
}

helper void ledger_enter(void *thread, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here, struct cpu_row *row)
{
	u32 place = ledger_place(thread, pid, now, here);
	struct ledger_task *task = ledger_row(place);
	struct ledger_stay *stay;

	if (!task) {
		ledger_push_stay(thread, pid, now, cpu, here, row);
		return;
	}
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
	/* After the wait has been shared out: this one has no part in it. */
	stay = ledger_push_stay(thread, pid, now, cpu, here, row);
	if (stay) {
		task->cgroup_id = stay->cgroup_id;
		((u64 *)task->comm)[0] = ((u64 *)stay->comm)[0];
		((u64 *)task->comm)[1] = ((u64 *)stay->comm)[1];
	}
	ledger_write(task);
	here->running = place + 1;
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
		ledger_enter((void *)ctx[2], next_pid, now, cpu, here, row);
	else
		ledger_push_stay((void *)ctx[2], 0, now, cpu, here, row);
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
	if (place == LEDGER_NONE && !read_small(thread, TASK_STRUCT__ON_CPU))
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

	if (!here || read_small(thread, TASK_STRUCT__ON_RQ) != LEDGER_ON_RQ_MIGRATING)
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
	ledger_note_softirq(vector, row->softirq_run_ns, cpu, here);
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
