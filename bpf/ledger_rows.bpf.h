/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads' rows: found by pid, given out on first use, written so that a reader sees a torn one. See ledger.h. */
#include "ledger.h"
#include "task.bpf.h"

/* Source: include/linux/sched.h. */
#define LEDGER_PF_KTHREAD 0x200000

#define LEDGER_NONE 0xffffffff

MAPPED_ARRAY(ledger_task, ledger_tasks, LEDGER_TASKS);
MAPPED_ARRAY(ledger_cpu, ledger_cpus, NR_CPUS);

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
	task->file_seen_ns = 0;
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

/* Return where a thread's row is; it gets one if it has none. */
helper u32 ledger_place(void *thread, u32 pid, u64 now, struct ledger_cpu *here)
{
	u32 place = ledger_place_of(pid);

	return place == LEDGER_NONE ? ledger_claim(thread, pid, now, here) : place;
}
