/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a stretch of a thread's time counts as: run, waited for a CPU, kept from it by a quota, asleep and for what. */
#include "ledger_calls.bpf.h"
#include "ledger_holders.bpf.h"

/* Source: include/linux/sched.h, since v4.14. */
#define LEDGER_TASK_UNINTERRUPTIBLE 0x2
#define LEDGER_TASK_STOPPED 0xc
#define LEDGER_TASK_NOLOAD 0x400
#define LEDGER_MAX_RT_PRIO 100

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

helper u32 ledger_block_of(struct ledger_task *task, void *thread, u32 state, u64 now)
{
	u32 kind;

	if (task->lock)
		return task->lock;
#ifdef TASK_STRUCT__IN_IOWAIT
	if (read_kernel(thread, u8, TASK_STRUCT__IN_IOWAIT) >> TASK_STRUCT__IN_IOWAIT__BIT & 1)
		return LEDGER_DISK;
#endif
	if (state & LEDGER_TASK_STOPPED)
		return LEDGER_STOPPED;
	kind = ledger_call_of(task, thread, now);
	/* Network file systems wait so. Of other calls it is not what they were made for. */
	if ((state & (LEDGER_TASK_UNINTERRUPTIBLE | LEDGER_TASK_NOLOAD)) == LEDGER_TASK_UNINTERRUPTIBLE &&
	    kind != LEDGER_FILE)
		return LEDGER_UNINTERRUPTIBLE;
	return kind;
}
