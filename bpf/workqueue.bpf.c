/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Kernel work: how late it starts, how long it runs, and pools in which none is begun.
 *
 * Works are known by a number made from their address, workers by their pid. A work that is cancelled leaves its place
 * behind, to whoever hashes there next: so nothing is told of works that wait, but of pools, which are looked at
 * themselves. Works of softirq context (BH workqueues) have no worker, and are known by their CPU.
 */
#include "foreshock.bpf.h"
#include "workqueue.h"

MAPPED_ARRAY(workqueue_row, workqueue_rows, NR_CPUS);
MAPPED_ARRAY(workqueue_queued, workqueue_places, WORKQUEUE_PLACES);
MAPPED_ARRAY(workqueue_running, workqueue_workers, WORKQUEUE_WORKERS);
MAPPED_ARRAY(workqueue_running, workqueue_softirqs, NR_CPUS);
MAPPED_ARRAY(workqueue_pool, workqueue_pools, NR_CPUS * WORKQUEUE_POOLS);

/* A number that tells a work: the verifier allows arithmetic only on the difference of two pointers. */
helper u64 workqueue_number(void *work)
{
	u64 number = (u64)work - (u64)get_hist_edges();

	keep(number);
	return number;
}

/* Fibonacci hashing: the upper bits are the good ones. */
helper struct workqueue_queued *workqueue_place(u64 number)
{
	u32 index = number * 0x9e3779b97f4a7c15ULL >> (64 - WORKQUEUE_PLACE_BITS);

	return workqueue_places.lookup(&index);
}

helper struct workqueue_row *workqueue_row_of(u32 cpu)
{
	return workqueue_rows.lookup(&cpu);
}

helper struct workqueue_pool *workqueue_pool_at(u32 group, u32 place)
{
	u32 index = group * WORKQUEUE_POOLS + place;

	return workqueue_pools.lookup(&index);
}

/* Remember a pool, so that clocks look at it. Unbound ones are shared out among the CPUs. */
helper void note_pool(void *pool, u32 cpu)
{
	s32 of_cpu = read_kernel(pool, s32, WORKER_POOL__CPU);
	s32 id = read_kernel(pool, s32, WORKER_POOL__ID);
	u32 group = of_cpu >= 0 ? (u32)of_cpu : (u32)id % NR_CPUS;
	struct workqueue_pool *known, *free = NULL;
	struct workqueue_row *works;

#pragma nounroll
	for (u32 place = 0; place < WORKQUEUE_POOLS; place++) {
		known = workqueue_pool_at(group, place);
		if (!known)
			return;
		if (known->address == (u64)pool)
			return;
		if (!known->address) {
			free = known;
			break;
		}
	}
	works = workqueue_row_of(cpu);
	if (free) {
		free->cpu = of_cpu;
		free->id = id;
		free->since_ns = 0;
		barrier();
		free->address = (u64)pool;
	} else if (works) {
		works->collided++;
	}
}

handler workqueue_on_workqueue_queue_work(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u64 number = workqueue_number((void *)ctx[2]);
	struct workqueue_queued *place = workqueue_place(number);

	if (place) {
		place->queued_ns = now;
		barrier();
		place->number = number;
	}
	note_pool(read_kernel(ctx[1], void *, POOL_WORKQUEUE__POOL), cpu);
}

helper void tell_work(u32 kind, u64 duration_ns, u64 function, u64 now, u32 cpu, struct cpu_row *row)
{
	struct workqueue_worst *worst = events.ringbuf_reserve(sizeof(*worst));

	if (!worst) {
		row->events_lost++;
		return;
	}
	begin_event(&worst->event, WORKQUEUE_WORST_EVENT, now, cpu);
	worst->duration_ns = duration_ns;
	worst->function = function;
	worst->kind = kind;
	worst->pid = bpf_get_current_pid_tgid();
	bpf_get_current_comm(worst->comm, sizeof(worst->comm));
	submit_event(worst);
}

helper void end_delay(u64 number, u64 function, u64 now, u32 cpu, struct cpu_row *row, struct workqueue_row *works)
{
	struct workqueue_queued *place = workqueue_place(number);
	u64 delay_ns;

	if (!place || place->number != number) {
		works->unqueued++;
		return;
	}
	delay_ns = now - place->queued_ns;
	place->number = 0;
	if ((s64)delay_ns < 0) {
		works->negative++;
		return;
	}
	hist_add(&works->delay, delay_ns);
	if (delay_ns >= WORKQUEUE_THRESHOLD_NS && may_send(&works->delay_limit, delay_ns, now))
		tell_work(WORKQUEUE_WORST_DELAY, delay_ns, function, now, cpu, row);
}

helper struct workqueue_running *worker_at(u32 pid, u32 other)
{
	u32 index = (pid & (WORKQUEUE_WORKERS - 1)) ^ other;

	return workqueue_workers.lookup(&index);
}

/* The worker's place; else, if it is to be given one, a free one. */
helper struct workqueue_running *worker_of(u32 pid, bool wanted)
{
	struct workqueue_running *first = worker_at(pid, 0), *second = worker_at(pid, WORKQUEUE_WORKERS / 2);

	if (!first || !second)
		return NULL;
	if (first->pid == pid && first->started_ns)
		return first;
	if (second->pid == pid && second->started_ns)
		return second;
	if (!wanted)
		return NULL;
	if (!first->started_ns)
		return first;
	return second->started_ns ? NULL : second;
}

helper struct workqueue_running *running_of(u32 cpu, struct cpu_row *row, bool wanted)
{
	if (row->softirq_entered_ns)
		return workqueue_softirqs.lookup(&cpu);
	return worker_of(bpf_get_current_pid_tgid(), wanted);
}

handler workqueue_on_workqueue_execute_start(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *work = (void *)ctx[0];
	u64 function = read_kernel(work, u64, WORK_STRUCT__FUNC);
	struct workqueue_row *works = workqueue_row_of(cpu);
	struct workqueue_running *running = running_of(cpu, row, true);

	if (!works)
		return;
	if (running) {
		running->function = function;
		running->pid = bpf_get_current_pid_tgid();
		running->cpu = cpu;
		barrier();
		running->started_ns = now;
	} else {
		works->collided++;
	}
	if (!row->untraced)
		end_delay(workqueue_number(work), function, now, cpu, row, works);
}

handler workqueue_on_workqueue_execute_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct workqueue_row *works = workqueue_row_of(cpu);
	struct workqueue_running *running = running_of(cpu, row, false);
	u64 run_ns;

	if (!works)
		return;
	if (!running || !running->started_ns) {
		works->unmatched++;
		return;
	}
	run_ns = now - running->started_ns;
	running->started_ns = 0;
	if (row->untraced)
		return;
	if ((s64)run_ns < 0) {
		works->negative++;
		return;
	}
	hist_add(&works->run, run_ns);
	if (run_ns >= WORKQUEUE_THRESHOLD_NS && may_send(&works->run_limit, run_ns, now))
		tell_work(WORKQUEUE_WORST_RUN, run_ns, running->function, now, cpu, row);
}

/* What lies at an address that may be nobody's any more; 0 then. */
helper u64 peek(u64 address)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/*
 * The pool's list of works that wait, and when one was last begun, as wq_watchdog_timer_fn() sees them. A pool that
 * is gone has another id, or a list that does not hold together.
 */
helper void judge_pool(struct workqueue_pool *pool, u64 now)
{
	u64 list = pool->address + WORKER_POOL__WORKLIST;
	u64 first, progress;
	s32 id = -1;

	if (!pool->address)
		return;
	first = peek(list);
	bpf_probe_read_kernel(&id, sizeof(id), (void *)(pool->address + WORKER_POOL__ID));
	if (id != pool->id) {
		pool->address = 0;
		pool->since_ns = 0;
		return;
	}
	if (first == list || peek(first + 8) != list) {
		pool->since_ns = 0;
		return;
	}
	progress = peek(pool->address + WORKER_POOL__WATCHDOG_TS);
	pool->function = peek(first - WORK_STRUCT__ENTRY + WORK_STRUCT__FUNC);
	if (!pool->since_ns || progress != pool->progress)
		pool->since_ns = now;
	pool->progress = progress;
}

/* Those of this CPU, and of the one before: a CPU that is stuck does not look. */
handler workqueue_on_clock(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 before = cpu ? cpu - 1 : NR_CPUS - 1;
	struct workqueue_pool *pool;

#pragma nounroll
	for (u32 place = 0; place < 2 * WORKQUEUE_POOLS; place++) {
		pool = workqueue_pool_at(place & WORKQUEUE_POOLS ? before : cpu, place & (WORKQUEUE_POOLS - 1));
		if (pool)
			judge_pool(pool, now);
	}
}
