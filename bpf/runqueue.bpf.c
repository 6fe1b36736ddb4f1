/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How long runnable tasks wait for a CPU.
 *
 * A wait begins at sched_waking (sched_wakeup fires on the target CPU, once that answers), with a new task, or
 * when a task is preempted; it ends when the task is switched in. pid 0 never waits.
 */
#include "foreshock.bpf.h"
#include "runqueue.h"
#include "task.bpf.h"
#include "switch.bpf.h"

#define TIME_MASK ((1ULL << RUNQUEUE_TIME_BITS) - 1)
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200
#define ON_RQ_MIGRATING 2

MAPPED_ARRAY(runqueue_row, runqueue_rows, NR_CPUS);
MAPPED_ARRAY(runqueue_set, runqueue_sets, RUNQUEUE_SETS);
MAPPED_ARRAY(runqueue_move, runqueue_moves, RUNQUEUE_MOVES);

helper u64 runqueue_tag(u32 pid)
{
	return (u64)((pid >> RUNQUEUE_SET_BITS) + 1) << RUNQUEUE_TIME_BITS;
}

helper struct runqueue_set *runqueue_set_of(u32 pid)
{
	u32 index = pid & (RUNQUEUE_SETS - 1);

	return runqueue_sets.lookup(&index);
}

helper struct runqueue_row *runqueue_row_of(u32 cpu)
{
	return runqueue_rows.lookup(&cpu);
}

/* Already queued, so that this wake-up starts no wait (a sleeper whose dequeue was put off does not count). */
helper bool is_queued(void *task)
{
#ifdef TASK_STRUCT__SE__SCHED_DELAYED
	if (read_kernel(task, u8, TASK_STRUCT__SE__SCHED_DELAYED))
		return false;
#endif
	return read_small(task, TASK_STRUCT__ON_RQ);
}

helper void count_collision(u32 cpu)
{
	struct runqueue_row *waits = runqueue_row_of(cpu);

	if (waits)
		waits->collided++;
}

/*
 * Note that a task waits from now on. Its own older word can be left from a wake-up while it was running; it
 * stays only if the task is queued already, and has to if the wait is restarted by a wake-up.
 */
helper void start_wait(void *task, u32 pid, u64 now, bool woken, u32 cpu)
{
	struct runqueue_set *set = runqueue_set_of(pid);
	u64 tag = runqueue_tag(pid);
	u64 word = tag | (now & TIME_MASK);
	int free = -1;

	if (!set)
		return;
#pragma unroll
	for (int way = RUNQUEUE_WAYS - 1; way >= 0; way--) {
		u64 old = set->ways[way];

		if (!old) {
			free = way;
		} else if ((old & ~TIME_MASK) == tag) {
			if (!woken || !is_queued(task))
				set->ways[way] = word;
			return;
		}
	}
	if (free == 0)
		set->ways[0] = word;
	else if (free == 1)
		set->ways[1] = word;
	else if (free == 2)
		set->ways[2] = word;
	else if (free == 3)
		set->ways[3] = word;
	else
		count_collision(cpu);
}

/* Take a task's word out; 0 when there is none. */
helper u64 take_wait(u32 pid)
{
	struct runqueue_set *set = runqueue_set_of(pid);
	u64 tag = runqueue_tag(pid);

	if (!set)
		return 0;
#pragma unroll
	for (int way = 0; way < RUNQUEUE_WAYS; way++) {
		u64 word = set->ways[way];

		if ((word & ~TIME_MASK) == tag) {
			set->ways[way] = 0;
			return word;
		}
	}
	return 0;
}

/*
 * A task goes to sleep: a word that it has still is from a wake-up that found it running, and nothing waits. Left in
 * place, it would turn into a wait as long as the sleep if the kernel showed us no waking. But a wake-up that is going
 * on right now counts: the waker holds the task's lock, or has marked the task and will queue it once it is off the CPU.
 */
helper void forget_wait(void *task, u32 pid)
{
	struct runqueue_set *set = runqueue_set_of(pid);
	u64 tag = runqueue_tag(pid);

	if (!set)
		return;
#pragma unroll
	for (int way = 0; way < RUNQUEUE_WAYS; way++) {
		if ((set->ways[way] & ~TIME_MASK) != tag)
			continue;
		barrier();
		if (!read_kernel(task, u32, TASK_STRUCT__PI_LOCK)) {
			barrier();
			if (read_kernel(task, u32, TASK_STRUCT__STATE) != TASK_WAKING)
				set->ways[way] = 0;
		}
		return;
	}
}

#define MOVE_TIME_MASK ((1ULL << 46) - 1)

/* Where the wait was spent: the CPU it was last moved away from while queued, else this one. */
helper void find_waited_cpu(struct runqueue_worst *worst, u32 pid, u64 now, u64 wait_ns)
{
	u32 index = pid & (RUNQUEUE_MOVES - 1);
	struct runqueue_move *move = runqueue_moves.lookup(&index);
	u64 word = move ? move->word : 0;
	u64 age_ns = (now - word) & MOVE_TIME_MASK;

	worst->waited_until_ns = now;
	if (word && word >> 58 == pid >> 16 && age_ns < wait_ns) {
		worst->waited_cpu = (word >> 46) & 0xfff;
		worst->waited_until_ns = now - age_ns;
	}
}

helper void send_worst(void *task, u32 pid, u64 wait_ns, u64 now, u32 cpu, struct cpu_row *row)
{
	struct runqueue_worst *worst = events.ringbuf_reserve(sizeof(*worst));
	struct cpu_row *waited;
	u32 waited_cpu;

	if (!worst) {
		row->events_lost++;
		return;
	}
	begin_event(&worst->event, RUNQUEUE_WORST_EVENT, now, cpu);
	worst->wait_ns = wait_ns;
	worst->cgroup_id = task_cgroup_id(task);
	worst->pid = pid;
	worst->tgid = read_kernel(task, u32, TASK_STRUCT__TGID);
	((u64 *)worst->comm)[0] = read_kernel(task, u64, TASK_STRUCT__COMM);
	((u64 *)worst->comm)[1] = read_kernel(task, u64, TASK_STRUCT__COMM + 8);
	worst->pad = 0;
	worst->waited_cpu = cpu;
	find_waited_cpu(worst, pid, now, wait_ns);
	waited_cpu = worst->waited_cpu;
	waited = cpus.lookup(&waited_cpu);
	if (waited)
		copy_cpu(&worst->cpu, waited);
	submit_event(worst);
}

helper void end_wait(void *task, u32 pid, u64 now, u32 cpu, struct cpu_row *row, struct runqueue_row *waits)
{
	u64 word = take_wait(pid);
	u64 wait_ns;

	/* Left out by the user; the wait is over all the same. A word may be left from before it changed cgroups. */
	if (row->untraced || !task_wanted(task))
		return;
	if (!word) {
		waits->unmatched++;
		return;
	}
	wait_ns = (now - word) & TIME_MASK;
	if (wait_ns >> (RUNQUEUE_TIME_BITS - 1)) {
		waits->negative++;
		return;
	}
	row->waited_ns = wait_ns;
	hist_add(&waits->wait, wait_ns);
	if (wait_ns >= RUNQUEUE_THRESHOLD_NS && may_send(&waits->limit, wait_ns, now))
		send_worst(task, pid, wait_ns, now, cpu, row);
}

handler runqueue_on_sched_waking(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *task = (void *)ctx[0];
	u32 pid = read_kernel(task, u32, TASK_STRUCT__PID);

	if (pid && task_wanted(task))
		start_wait(task, pid, now, true, cpu);
}

handler runqueue_on_sched_wakeup_new(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *task = (void *)ctx[0];
	u32 pid = read_kernel(task, u32, TASK_STRUCT__PID);

	if (pid && task_wanted(task))
		start_wait(task, pid, now, false, cpu);
}

handler runqueue_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 prev_pid = read_kernel(prev, u32, TASK_STRUCT__PID);
	u32 next_pid = read_kernel(next, u32, TASK_STRUCT__PID);
	struct runqueue_row *waits = runqueue_row_of(cpu);

	row->waited_ns = 0;
	if (!waits)
		return;
	if (prev_pid) {
		if (switched_out_runnable(ctx)) {
			if (task_wanted(prev))
				start_wait(prev, prev_pid, now, false, cpu);
		} else if (switched_out_state(ctx) & TASK_DEAD) {
			take_wait(prev_pid);
		} else {
			forget_wait(prev, prev_pid);
		}
	}
	if (next_pid)
		end_wait(next, next_pid, now, cpu, row, waits);
}

/* Only moves of queued tasks matter: a wake-up that picks another CPU has not waited yet. */
handler runqueue_on_sched_migrate_task(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *task = (void *)ctx[0];
	u32 pid = read_kernel(task, u32, TASK_STRUCT__PID);
	u32 index = pid & (RUNQUEUE_MOVES - 1);
	struct runqueue_move *move;
	u64 from;

	if (read_small(task, TASK_STRUCT__ON_RQ) != ON_RQ_MIGRATING)
		return;
	move = runqueue_moves.lookup(&index);
	if (!move)
		return;
	from = read_kernel(task, u32, TASK_STRUCT__CPU);
	move->word = (u64)(pid >> 16) << 58 | (from & 0xfff) << 46 | (bpf_ktime_get_ns() & MOVE_TIME_MASK);
}
