/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What every program uses: memory-mapped maps, histograms, kernel reads, single events.
 *
 * The loader writes one program per attach point. It looks up this CPU's row and the time once and calls
 * each probe's handler in turn:
 *
 *	static inline void <probe>_on_<event>(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
 *
 * ctx[i] is the tracepoint's argument i. now is 0 if no handler of the event asked for the time.
 */
#include "cpustate.h"

#define F_MMAPABLE (1 << 10)

#define handler static __attribute__((always_inline)) void
#define helper static __attribute__((always_inline))

#define barrier() asm volatile("" ::: "memory")

/* Makes the compiler forget what it knows of a value, so that the bounds check below stays for the verifier. */
#define keep(value) asm volatile("" : "+r"(value))

/* An array that user space reads through mmap, without system calls. */
#define MAPPED_ARRAY(layout, name, rows) BPF_F_TABLE("array", u32, struct layout, name, rows, F_MMAPABLE)

/* A member at its BTF offset. BTF raw tracepoints may read through the pointers they are given. */
#define read_kernel(ptr, type, offset) (*(type *)((void *)(ptr) + (offset)))

/* A member that is a byte in some kernels and an int in others, by its size there. */
#define read_small(ptr, member) (member##__SIZE == 1 ? read_kernel(ptr, u8, member) : read_kernel(ptr, u32, member))

MAPPED_ARRAY(cpu_row, cpus, NR_CPUS);
MAPPED_ARRAY(hist_edges, hist_edges_table, 1);
BPF_RINGBUF_OUTPUT(events, RING_PAGES);
/* One for each process that alerts, if the loader is asked for them: a ring has one reader, which may freeze. */
#if SENTINELS > 0
BPF_RINGBUF_OUTPUT(sentinel_0, SENTINEL_RING_PAGES);
#endif
#if SENTINELS > 1
BPF_RINGBUF_OUTPUT(sentinel_1, SENTINEL_RING_PAGES);
#endif

helper struct hist_edges *get_hist_edges(void)
{
	u32 zero = 0;

	return hist_edges_table.lookup(&zero);
}

/* The highest bit set, counted from 0. BPF has no instruction for it. */
helper u64 top_bit(u64 value)
{
	u64 bit = 0;

	if (value >> 32) {
		value >>= 32;
		bit += 32;
	}
	if (value >> 16) {
		value >>= 16;
		bit += 16;
	}
	if (value >> 8) {
		value >>= 8;
		bit += 8;
	}
	if (value >> 4) {
		value >>= 4;
		bit += 4;
	}
	if (value >> 2) {
		value >>= 2;
		bit += 2;
	}
	return bit + (value >> 1);
}

/* The slot of a value: a guess from its top four bits, which is at most two too low. */
helper u64 hist_slot(struct hist_edges *edges, u64 value)
{
	u64 slot, bit, index;

	if (!value)
		return 0;
	bit = top_bit(value);
	/* Past the last edge (128 s, below 2^37) there is nothing to tell apart; and no shift can overflow below. */
	if (bit > 40)
		return HIST_SLOTS - 1;
	index = (bit << 3) | ((value << 3 >> bit) & 7);
	keep(index);
	slot = edges->guess[index & (HIST_GUESSES - 1)];
	keep(slot);
	if (slot < HIST_SLOTS - 1 && value > edges->edge_ns[slot])
		slot++;
	if (slot < HIST_SLOTS - 1 && value > edges->edge_ns[slot])
		slot++;
	return slot;
}

/* The same with the table looked up; callers compare with HIST_SLOTS, for the verifier. */
helper u64 hist_find(u64 value)
{
	struct hist_edges *edges = get_hist_edges();
	u64 slot = HIST_SLOTS;

	if (edges)
		slot = hist_slot(edges, value);
	keep(slot);
	return slot;
}

/* Count a value in a histogram that only this CPU writes: in this order, see tracer/collect/snapshots.py. */
helper void hist_add(struct hist *hist, u64 value)
{
	u64 slot = hist_find(value);

	if (slot >= HIST_SLOTS)
		return;
	hist->sum += value;
	barrier();
	hist->slots[slot]++;
}

/* What every event starts with. The caller fills the rest and submits. */
helper void begin_event(struct event *event, u32 kind, u64 now, u32 cpu)
{
	event->kind = kind;
	event->cpu = cpu;
	event->time_ns = now;
}

/* Most events a second that one limit lets through whatever their size. */
#define EVENTS_PER_SECOND 8

helper bool may_send(struct event_limit *limit, u64 duration_ns, u64 now)
{
	u64 second = now >> 30;

	if (limit->second != second) {
		limit->second = second;
		limit->sent = 0;
		limit->longest_ns = 0;
	}
	if (limit->sent >= EVENTS_PER_SECOND && duration_ns <= limit->longest_ns) {
		limit->suppressed++;
		return false;
	}
	limit->sent++;
	if (duration_ns > limit->longest_ns)
		limit->longest_ns = duration_ns;
	return true;
}

/* Events are read once per interval: waking the reader for each would be noise of ours (BPF_RB_NO_WAKEUP). */
helper void submit_event(void *event)
{
	bpf_ringbuf_submit(event, 1);
}

/*
 * Send an event that was built in a map, and one that can't wait for the interval's end: to every ring, and each
 * sentinel is woken (BPF_RB_FORCE_WAKEUP). A ring without room costs the others nothing.
 */
helper void send_alarm(void *event, u64 size, struct cpu_row *row)
{
#if SENTINELS > 0
	sentinel_0.ringbuf_output(event, size, 2);
#endif
#if SENTINELS > 1
	sentinel_1.ringbuf_output(event, size, 2);
#endif
	if (events.ringbuf_output(event, size, 1))
		row->events_lost++;
}

helper void copy_cpu(struct cpu_row *to, struct cpu_row *from)
{
	bpf_probe_read_kernel(to, sizeof(*to), from);
}
