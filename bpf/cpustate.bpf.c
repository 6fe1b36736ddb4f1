/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where a CPU's time goes: tasks, idle, softirqs, hard interrupts.
 *
 * The parts are disjoint: an interrupt inside a softirq counts as interrupt, a softirq over the idle task as
 * softirq. Device interrupts and x86 vectors do not nest. Handlers of the other probes run after these.
 */
#include "foreshock.bpf.h"

/* Around everything that changes a row, see cpustate.h: cpu_write(&row->writes) before it and after it. */
helper void cpu_write(u32 *writes)
{
	barrier();
	*writes += 1;
	barrier();
}

/*
 * A softirq's program read the clock before it gets here, and interrupts may have come since: what they took is in
 * hardirq_ns already. Then the latest one's end is the time that hardirq_ns is of. One that comes between these
 * reads is seen by the next look; behind the last look is nothing but the store.
 */
helper u64 cpu_softirq_time(struct cpu_row *row, u64 now, u64 *hardirq_ns)
{
	u64 left_ns = row->hardirq_left_ns;

#pragma unroll
	for (int look = 0; look < 3; look++) {
		barrier();
		*hardirq_ns = row->hardirq_ns;
		barrier();
		if (row->hardirq_left_ns == left_ns)
			break;
		left_ns = row->hardirq_left_ns;
	}
	return left_ns > now ? left_ns : now;
}

helper void cpu_push_stay(struct cpu_row *row, void *next, u64 now)
{
	struct cpu_stay *stay;

	stay = &row->stays[(row->switches + 1) & (CPU_STAYS - 1)];
	stay->started_ns = now;
	stay->softirq_ns = row->softirq_ns;
	stay->hardirq_ns = row->hardirq_ns;
	stay->pid = read_kernel(next, u32, TASK_STRUCT__PID);
	stay->tgid = read_kernel(next, u32, TASK_STRUCT__TGID);
	stay->prio = read_kernel(next, s32, TASK_STRUCT__PRIO);
	((u64 *)stay->comm)[0] = read_kernel(next, u64, TASK_STRUCT__COMM);
	((u64 *)stay->comm)[1] = read_kernel(next, u64, TASK_STRUCT__COMM + 8);
	/* Last: a reader that sees the new number sees the whole stay. */
	barrier();
	row->switches++;
}

/*
 * Tasks are not switched inside interrupts, and softirqs start after the interrupt that raised them: what is still
 * open has an end that was not seen. Left open, it would last until the next end that is. (PREEMPT_RT switches
 * inside softirqs; there a preempted softirq is counted as unmatched, not as a long one.)
 */
helper void cpu_forget_hardirq(struct cpu_row *row)
{
	if (row->hardirq_entered_ns) {
		row->hardirq_entered_ns = 0;
		row->unmatched++;
	}
}

helper void cpu_forget_softirq(struct cpu_row *row)
{
	if (row->softirq_entered_ns) {
		row->softirq_entered_ns = 0;
		row->unmatched++;
	}
}

handler cpustate_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct cpu_stay *stay = &row->stays[row->switches & (CPU_STAYS - 1)];
	u32 pid = read_kernel(ctx[1], u32, TASK_STRUCT__PID);
	u64 elapsed_ns, stolen_ns;

	cpu_write(&row->writes);
	cpu_forget_hardirq(row);
	cpu_forget_softirq(row);
	stay->prio = read_kernel(ctx[1], s32, TASK_STRUCT__PRIO);
	if (!row->switches)
		row->first_pid = pid;
	/*
	 * A kernel may not show every switch (cpustate.check), and then another task leaves than came. Where one of
	 * them is the idle task, how long each was there is not known: most of it is idle, and nobody is to blame.
	 */
	if (!pid)
		stay->pid = 0;
	if (stay->started_ns) {
		elapsed_ns = now - stay->started_ns;
		stolen_ns = row->softirq_ns + row->hardirq_ns - stay->softirq_ns - stay->hardirq_ns;
		if ((s64)(elapsed_ns - stolen_ns) < 0)
			row->negative++;
		else if (stay->pid)
			row->running_ns += elapsed_ns - stolen_ns;
		else
			row->idle_ns += elapsed_ns - stolen_ns;
		if (!pid && elapsed_ns >= CPU_TICKLESS_NS)
			row->idle_until_ns = now;
	}
	cpu_push_stay(row, (void *)ctx[2], now);
	cpu_write(&row->writes);
}

handler cpustate_on_softirq_entry(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u64 hardirq_ns;

	cpu_write(&row->softirq_writes);
	cpu_forget_hardirq(row);
	cpu_forget_softirq(row);
	row->softirq_vector = ctx[0];
	now = cpu_softirq_time(row, now, &hardirq_ns);
	row->softirq_hardirq_ns = hardirq_ns;
	row->softirq_entered_ns = now;
	cpu_write(&row->softirq_writes);
}

helper void cpu_leave_softirq(struct cpu_row *row, u64 now)
{
	u64 hardirq_ns, run_ns;

	row->softirq_run_valid = 0;
	if (!row->softirq_entered_ns) {
		row->unmatched++;
		return;
	}
	now = cpu_softirq_time(row, now, &hardirq_ns);
	run_ns = now - row->softirq_entered_ns - (hardirq_ns - row->softirq_hardirq_ns);
	row->softirq_entered_ns = 0;
	if ((s64)run_ns < 0) {
		row->negative++;
		return;
	}
	row->softirq_run_ns = run_ns;
	row->softirq_run_valid = 1;
	row->softirq_ns += run_ns;
}

handler cpustate_on_softirq_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	cpu_write(&row->softirq_writes);
	cpu_leave_softirq(row, now);
	cpu_write(&row->softirq_writes);
}

helper void cpu_enter_hardirq(struct cpu_row *row, u64 now)
{
	cpu_write(&row->writes);
	cpu_forget_hardirq(row);
	row->hardirq_entered_ns = now;
	cpu_write(&row->writes);
}

helper void cpu_end_hardirq(struct cpu_row *row, u64 now)
{
	u64 run_ns;

	row->hardirq_run_valid = 0;
	if (!row->hardirq_entered_ns) {
		row->unmatched++;
		return;
	}
	run_ns = now - row->hardirq_entered_ns;
	row->hardirq_entered_ns = 0;
	if ((s64)run_ns < 0) {
		row->negative++;
		return;
	}
	row->hardirq_run_ns = run_ns;
	row->hardirq_run_valid = 1;
	row->hardirq_ns += run_ns;
	row->hardirq_left_ns = now;
}

helper void cpu_leave_hardirq(struct cpu_row *row, u64 now)
{
	cpu_write(&row->writes);
	cpu_end_hardirq(row, now);
	cpu_write(&row->writes);
}

handler cpustate_on_irq_handler_entry(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	cpu_enter_hardirq(row, now);
}

handler cpustate_on_irq_handler_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	cpu_leave_hardirq(row, now);
}

handler cpustate_on_vector_entry(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	cpu_enter_hardirq(row, now);
}

handler cpustate_on_vector_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	cpu_leave_hardirq(row, now);
}
