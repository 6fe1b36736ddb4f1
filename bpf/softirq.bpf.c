/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How late softirqs start and how long they run, by CPU and vector: never by pid, which is 0 on every idle CPU. */
#include "foreshock.bpf.h"
#include "softirq.h"

MAPPED_ARRAY(softirq_row, softirq_rows, NR_CPUS * SOFTIRQ_VECTORS);

helper struct softirq_row *softirq_row_of(u32 cpu, u32 vector)
{
	u32 index = cpu * SOFTIRQ_VECTORS + vector;

	return vector < SOFTIRQ_VECTORS ? softirq_rows.lookup(&index) : NULL;
}

helper void send_softirq_worst(u32 kind, u32 vector, u64 duration_ns, u64 softirq_ns, u64 hardirq_ns, u64 now, u32 cpu,
			       struct cpu_row *row)
{
	struct softirq_worst *worst = events.ringbuf_reserve(sizeof(*worst));

	if (!worst) {
		row->events_lost++;
		return;
	}
	begin_event(&worst->event, SOFTIRQ_WORST_EVENT, now, cpu);
	worst->duration_ns = duration_ns;
	worst->softirq_ns = softirq_ns;
	worst->hardirq_ns = hardirq_ns;
	worst->kind = kind;
	worst->vector = vector;
	copy_cpu(&worst->cpu, row);
	submit_event(worst);
}

helper void softirq_note(struct softirq_raise *raise, struct cpu_row *row)
{
	raise->softirq_ns = row->softirq_ns;
	raise->hardirq_ns = row->hardirq_ns;
	barrier();
	raise->at_ns = bpf_ktime_get_ns();
}

/* Raised again while pending changes nothing, the oldest raise is the one that waits; but see softirq_serve. */
handler softirq_on_softirq_raise(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct softirq_row *softirq = softirq_row_of(cpu, ctx[0]);

	if (softirq)
		softirq_note(softirq->raised.at_ns ? &softirq->again : &softirq->raised, row);
}

/*
 * Take out the raise that an entry at now serves; NULL if none was shown.
 *
 * The kernel clears all pending bits, then lets interrupts in, then runs one vector after the other. So an interrupt's
 * raise that comes before a vector's entry and finds it raised may have been merged with the older raise, or be a new
 * one, whose run is still to come: the entries tell. Interrupts may raise it while this runs, too.
 */
helper struct softirq_raise *softirq_serve(struct softirq_row *softirq, u64 now)
{
	u64 raised_ns = softirq->raised.at_ns;

	if (raised_ns && (s64)(now - raised_ns) >= 0) {
		softirq->raised.at_ns = 0;
		softirq->served_ns = raised_ns;
		return &softirq->raised;
	}
	if ((s64)(softirq->again.at_ns - softirq->served_ns) <= 0)
		return NULL;
	softirq->served_ns = softirq->again.at_ns;
	return &softirq->again;
}

handler softirq_on_softirq_entry(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 vector = ctx[0];
	struct softirq_row *softirq = softirq_row_of(cpu, vector);
	struct softirq_raise *raise;
	u64 delay_ns;

	if (!softirq)
		return;
	raise = softirq_serve(softirq, now);
	if (!raise) {
		softirq->unraised++;
		return;
	}
	delay_ns = now - softirq->served_ns;
	if ((s64)delay_ns < 0) {
		softirq->negative++;
		return;
	}
	hist_add(&softirq->delay, delay_ns);
	if (delay_ns >= SOFTIRQ_THRESHOLD_NS && may_send(&softirq->delay_limit, delay_ns, now))
		send_softirq_worst(SOFTIRQ_WORST_DELAY, vector, delay_ns, row->softirq_ns - raise->softirq_ns,
				   row->hardirq_ns - raise->hardirq_ns, now, cpu, row);
}

handler softirq_on_softirq_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	u32 vector = ctx[0];
	struct softirq_row *softirq = softirq_row_of(cpu, vector);
	u64 run_ns = row->softirq_run_ns;

	if (!softirq)
		return;
	if (!row->softirq_run_valid) {
		/* Its entry was not shown: what raised it does not wait any more. */
		softirq->raised.at_ns = 0;
		return;
	}
	hist_add(&softirq->run, run_ns);
	if (run_ns >= SOFTIRQ_THRESHOLD_NS && may_send(&softirq->run_limit, run_ns, now))
		send_softirq_worst(SOFTIRQ_WORST_RUN, vector, run_ns, 0, row->hardirq_ns - row->softirq_hardirq_ns, now,
				   cpu, row);
}
