/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * CPUs that make no progress, judged on the CPU itself, a few times a second.
 *
 * A CPU is held up while it is in kernel mode at every sample, does not switch, and something is due that it does
 * not do: see CPUSTALL_*. A task that spins in user mode gives none of these signs, nor does one in a long system
 * call that lets others run.
 */
#include "foreshock.bpf.h"
#include "cpustall.h"

/* A little less than the time between two samples: what is this old was there at both. */
#define CPUSTALL_SHORTEST_NS 150000000
/* Open interrupts: this one, of the clock, is a few microseconds old. */
#define CPUSTALL_HARDIRQ_NS 50000000
/* Once a second: the fifth sample after may come a little early. */
#define CPUSTALL_AGAIN_NS 900000000
/* Three samples missed: interrupts were off. */
#define CPUSTALL_LATE_NS 700000000
/*
 * Code that turns preemption off and on all the time (encryption, checksums) is met with it off again and again.
 * Alone, without anything due, it has to be off at so many samples.
 */
#define CPUSTALL_PREEMPT_SAMPLES 10

#define PF_KTHREAD 0x00200000
#define PREEMPT_AND_SOFTIRQ 0xffff
/* "migratio" and "n/" */
#define STOPPER_COMM 0x6f6974617267696dULL
#define STOPPER_COMM_8 0x2f6e

MAPPED_ARRAY(cpustall_row, cpustall_rows, NR_CPUS);
/* Where each CPU builds its event, which goes to several rings: no stack has room for it. */
MAPPED_ARRAY(cpustall_stalls, cpustall_told, NR_CPUS);

helper struct cpustall_row *cpustall_row_of(u32 cpu)
{
	return cpustall_rows.lookup(&cpu);
}

/* The stopper of a CPU runs before everything else there; the kernel's watchdog has it run every 4 s. */
helper bool is_stopper(void *task)
{
	return read_kernel(task, u64, TASK_STRUCT__COMM) == STOPPER_COMM &&
	       read_kernel(task, u16, TASK_STRUCT__COMM + 8) == STOPPER_COMM_8 &&
	       read_kernel(task, u32, TASK_STRUCT__FLAGS) & PF_KTHREAD;
}

/*
 * watchdog_timer_fn() wakes the stopper from the timer's interrupt, which nothing else does in a sound kernel
 * but the balancing of real-time tasks. Its hrtimer would be the direct sign, at a cost to every hrtimer.
 */
handler cpustall_on_sched_waking(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *task = (void *)ctx[0];
	struct cpustall_row *stall;

	if (!row->hardirq_entered_ns || !is_stopper(task) || read_kernel(task, u32, TASK_STRUCT__CPU) != cpu)
		return;
	stall = cpustall_row_of(cpu);
	if (stall && !stall->feed_since_ns)
		stall->feed_since_ns = now;
}

helper void end_stall(struct cpustall_row *stall, u64 end_ns)
{
	u64 since_ns = stall->since_ns;

	stall->since_ns = 0;
	/* Seen once, or only for a moment: that is work. */
	if (since_ns && stall->seen_ns - since_ns >= CPUSTALL_SHORTEST_NS)
		hist_add(&stall->stall, end_ns - since_ns);
}

helper void end_feed(struct cpustall_row *stall, u64 now)
{
	u64 delay_ns = now - stall->feed_since_ns;

	stall->feed_since_ns = 0;
	stall->fed_ns = now;
	if ((s64)delay_ns < 0)
		stall->negative++;
	else
		hist_add(&stall->feed, delay_ns);
}

handler cpustall_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct cpustall_row *stall = cpustall_row_of(cpu);

	if (!stall || !(stall->since_ns | stall->feed_since_ns))
		return;
	end_stall(stall, now);
	if (stall->feed_since_ns && is_stopper((void *)ctx[2]))
		end_feed(stall, now);
}

handler cpustall_on_vector_entry(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct cpustall_row *stall = cpustall_row_of(cpu);

	if (stall)
		stall->heartbeat_ns = now;
}

/* ctx is struct bpf_perf_event_data: the interrupted registers come first. */
helper bool in_user_mode(u64 *ctx)
{
#if defined(__x86_64__)
	return ctx[17] & 3; /* cs */
#elif defined(__aarch64__)
	return !(ctx[33] & 0xf); /* pstate */
#else
	return false;
#endif
}

/* Whether another task is due here; a kernel that does not say is counted. */
helper bool need_resched(void *task, struct cpustall_row *stall)
{
#if defined(TASK_STRUCT__THREAD_INFO__PREEMPT__NEED_RESCHED)
	u32 not_needed = 1;

	bpf_probe_read_kernel(&not_needed, sizeof(not_needed), task + TASK_STRUCT__THREAD_INFO__PREEMPT__NEED_RESCHED);
	return !not_needed;
#elif defined(TIF_NEED_RESCHED) && defined(TASK_STRUCT__THREAD_INFO__FLAGS)
	u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), task + TASK_STRUCT__THREAD_INFO__FLAGS);
	return flags >> TIF_NEED_RESCHED & 1;
#else
	stall->unreadable++;
	return false;
#endif
}

/* The preemption count of the interrupted code and of the way here; 0 where it can't be read (x86). */
helper u32 preempt_count(void *task)
{
	u32 count = 0;

#ifdef TASK_STRUCT__THREAD_INFO__PREEMPT__COUNT
	bpf_probe_read_kernel(&count, sizeof(count), task + TASK_STRUCT__THREAD_INFO__PREEMPT__COUNT);
#endif
	return count & PREEMPT_AND_SOFTIRQ;
}

helper void forget_task(struct cpustall_row *stall)
{
	stall->need_resched_ns = 0;
	stall->preempt_off_ns = 0;
	stall->preempt_samples = 0;
}

helper void add_evidence(struct cpustall_row *stall, u32 evidence, u64 since_ns, u64 *earliest_ns)
{
	stall->evidence |= evidence;
	if (!*earliest_ns || since_ns < *earliest_ns)
		*earliest_ns = since_ns;
}

helper void judge_interrupts(struct cpustall_row *stall, u64 now, struct cpu_row *row, u64 *since_ns)
{
	if (row->softirq_entered_ns) {
		stall->vector = row->softirq_vector;
		add_evidence(stall, CPUSTALL_SOFTIRQ, row->softirq_entered_ns, since_ns);
	}
	if (row->hardirq_entered_ns && now - row->hardirq_entered_ns > CPUSTALL_HARDIRQ_NS)
		add_evidence(stall, CPUSTALL_HARDIRQ, row->hardirq_entered_ns, since_ns);
}

helper void judge_preemption(struct cpustall_row *stall, void *task, u64 now, u64 *since_ns)
{
	if (!stall->preempt_base || preempt_count(task) < stall->preempt_base) {
		stall->preempt_off_ns = 0;
		stall->preempt_samples = 0;
		return;
	}
	if (!stall->preempt_off_ns)
		stall->preempt_off_ns = now;
	stall->preempt_samples++;
	if (stall->preempt_samples >= CPUSTALL_PREEMPT_SAMPLES)
		add_evidence(stall, CPUSTALL_PREEMPT_OFF, stall->preempt_off_ns, since_ns);
	else if (*since_ns)
		stall->evidence |= CPUSTALL_PREEMPT_OFF;
}

helper void judge_task(struct cpustall_row *stall, u64 now, u64 *since_ns)
{
	void *task = (void *)bpf_get_current_task();

	if (!need_resched(task, stall)) {
		stall->need_resched_ns = 0;
	} else {
		if (!stall->need_resched_ns)
			stall->need_resched_ns = now;
		add_evidence(stall, CPUSTALL_NEED_RESCHED, stall->need_resched_ns, since_ns);
	}
	if (stall->feed_since_ns)
		add_evidence(stall, CPUSTALL_FEED, stall->feed_since_ns, since_ns);
	judge_preemption(stall, task, now, since_ns);
}

/* Since when the clock has been due: the latest sample, or the switch to this task where that came after it. */
helper u64 clock_due_since(struct cpu_row *row, u64 sampled_ns)
{
	u64 started_ns = row->stays[row->switches & (CPU_STAYS - 1)].started_ns;

	return started_ns > sampled_ns ? started_ns : sampled_ns;
}

/* What holds this CPU up, as evidence in its row and the time since when; 0 if nothing does. */
helper u64 judge(u64 *ctx, u64 now, struct cpu_row *row, struct cpustall_row *stall)
{
	u64 due_since_ns = clock_due_since(row, stall->sampled_ns);
	u64 since_ns = 0;

	if (stall->switches != row->switches)
		forget_task(stall);
	stall->switches = row->switches;
	stall->sampled_ns = now;
	stall->evidence = 0;
	if (in_user_mode(ctx)) {
		forget_task(stall);
		stall->preempt_base = preempt_count((void *)bpf_get_current_task()) + 1;
		return 0;
	}
	judge_interrupts(stall, now, row, &since_ns);
	/* Nothing waits for an idle CPU, and its clock may rest; but a softirq on top of the idle task is busy. */
	if (bpf_get_current_pid_tgid()) {
		judge_task(stall, now, &since_ns);
		if (due_since_ns && now - due_since_ns > CPUSTALL_LATE_NS)
			add_evidence(stall, CPUSTALL_CLOCK_LATE, due_since_ns, &since_ns);
	}
	return since_ns;
}

helper void tell_stall(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row, struct cpustall_row *stall)
{
	struct cpustall_stalls *told = cpustall_told.lookup(&cpu);
	u64 ids = bpf_get_current_pid_tgid();
	int size;

	if (!told)
		return;
	begin_event(&told->event, CPUSTALL_STALLS_EVENT, now, cpu);
	told->duration_ns = now - stall->since_ns;
	told->since_ns = stall->since_ns;
	told->feed_ns = stall->feed_since_ns ? now - stall->feed_since_ns : 0;
	told->evidence = stall->evidence;
	told->vector = stall->vector;
	told->pid = ids;
	told->tgid = ids >> 32;
	bpf_get_current_comm(told->comm, sizeof(told->comm));
	size = bpf_get_stack(ctx, told->stack, sizeof(told->stack), 0);
	told->frames = size > 0 ? (u32)size / 8 : 0;
	told->pad = 0;
	send_alarm(told, sizeof(*told), row);
	stall->told_ns = now;
}

handler cpustall_on_clock(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct cpustall_row *stall = cpustall_row_of(cpu);
	u64 since_ns;

	if (!stall)
		return;
	since_ns = judge(ctx, now, row, stall);
	stall->heartbeat_ns = now;
	/* Gone, or another one since: the earlier softirq has ended, and the next begun. */
	if (stall->since_ns && (!since_ns || since_ns > stall->seen_ns))
		end_stall(stall, stall->seen_ns);
	if (!since_ns)
		return;
	if (!stall->since_ns || since_ns < stall->since_ns)
		stall->since_ns = since_ns;
	stall->seen_ns = now;
	if (now - stall->since_ns >= CPUSTALL_THRESHOLD_NS && now - stall->told_ns >= CPUSTALL_AGAIN_NS)
		tell_stall(ctx, now, cpu, row, stall);
}
