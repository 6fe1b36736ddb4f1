/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Whether network polling keeps up: by NAPI, budget and CPU.
 *
 * The tracepoint fires at the end of a poll, in a softirq, a NAPI thread or a task that polls busily. A NAPI is
 * polled by one CPU at a time, and the kernel never runs this program inside itself on one CPU.
 */
#include "foreshock.bpf.h"
#include "napi.h"

MAPPED_ARRAY(napi_row, napi_rows, NR_CPUS * NAPI_ROWS);
MAPPED_ARRAY(napi_set, napi_sets, NAPI_SETS);

/* Places looked at before a NAPI goes to the common row. */
#define NAPI_STEPS 8

/* A row that idle can be given to another NAPI: 69 s, longer than intervals are. */
#define NAPI_IDLE_NS (1ULL << 36)

#define NAPI_TIME_MASK ((1ULL << NAPI_TIME_BITS) - 1)

helper struct napi_row *napi_row_at(u32 cpu, u32 place)
{
	u32 index = cpu * NAPI_ROWS + place;

	return napi_rows.lookup(&index);
}

/*
 * A number that tells a NAPI. The verifier allows no arithmetic on the address itself, but the difference of two
 * pointers is a number to it; the second one is always the same.
 */
helper u64 napi_number(void *napi)
{
	u64 number = (u64)napi - (u64)get_hist_edges();

	asm volatile("" : "+r"(number));
	return number;
}

/* Fibonacci hashing: the upper bits are the good ones. */
helper u64 napi_hash(u64 value)
{
	return value * 0x9e3779b97f4a7c15ULL;
}

helper void napi_set_device(struct napi_row *row, char a, char b, char c, char d, char e, char f, char g)
{
	((u64 *)row->device)[1] = 0;
	row->device[0] = a;
	row->device[1] = b;
	row->device[2] = c;
	row->device[3] = d;
	row->device[4] = e;
	row->device[5] = f;
	row->device[6] = g;
	row->device[7] = 0;
}

helper struct napi_row *napi_other(u32 cpu)
{
	struct napi_row *row = napi_row_at(cpu, NAPI_PLACES);

	if (!row)
		return NULL;
	napi_set_device(row, 'o', 't', 'h', 'e', 'r', 0, 0);
	row->folded++;
	return row;
}

/* Say whose row it is: at every poll, since devices are renamed and addresses used again. */
helper void napi_label(struct napi_row *row, void *napi)
{
	void *dev = read_kernel(napi, void *, NAPI_STRUCT__DEV);

	row->napi_id = read_kernel(napi, u32, NAPI_STRUCT__NAPI_ID);
	if (!dev) {
		row->ifindex = 0;
		napi_set_device(row, 'b', 'a', 'c', 'k', 'l', 'o', 'g');
		return;
	}
	row->ifindex = read_kernel(dev, u32, NET_DEVICE__IFINDEX);
	((u64 *)row->device)[0] = read_kernel(dev, u64, NET_DEVICE__NAME);
	((u64 *)row->device)[1] = read_kernel(dev, u64, NET_DEVICE__NAME + 8);
	if (!row->device[0])
		napi_set_device(row, 'd', 'u', 'm', 'm', 'y', 0, 0);
}

/* The row of a NAPI and budget on this CPU, given to it now if it has none. */
helper struct napi_row *napi_row_of(u32 cpu, void *napi, u64 number, u32 budget, u64 now)
{
	u32 home = napi_hash(number + budget) >> 58;
	struct napi_row *free = NULL;

#pragma unroll
	for (int step = 0; step < NAPI_STEPS; step++) {
		struct napi_row *row = napi_row_at(cpu, (home + step) & (NAPI_PLACES - 1));

		if (!row)
			return NULL;
		if (row->number == number && row->budget == budget) {
			napi_label(row, napi);
			return row;
		}
		if (!free && (!row->used_ns || now - row->used_ns > NAPI_IDLE_NS))
			free = row;
	}
	if (!free)
		return napi_other(cpu);
	free->number = number;
	free->budget = budget;
	free->streak = 0;
	free->streak_max = 0;
	napi_label(free, napi);
	return free;
}

helper void napi_add_gap(struct napi_row *row, u64 word, u64 now)
{
	u64 gap_ns = (now - word) & NAPI_TIME_MASK;

	if (gap_ns >> (NAPI_TIME_BITS - 1))
		row->negative++;
	else
		hist_add(&row->gap, gap_ns);
}

/*
 * End the gap that the NAPI's last poll began, if that was full, and begin one if this is. Kept apart from the
 * rows: the next poll may come on another CPU or with another budget.
 */
helper void napi_gap(struct napi_row *row, u64 number, bool full, u64 now)
{
	/* The NAPI's id is part of it, so that the next owner of an address ends no gap of the last one's. */
	u64 hash = napi_hash(number ^ (u64)row->napi_id << 8);
	u32 index = hash >> 52;
	u64 tag = ((hash >> 20) | 1) << NAPI_TIME_BITS;
	struct napi_set *set = napi_sets.lookup(&index);
	u64 begun = full ? tag | (now & NAPI_TIME_MASK) : 0;
	int free = -1;

	if (!set)
		return;
#pragma unroll
	for (int way = NAPI_WAYS - 1; way >= 0; way--) {
		u64 word = set->ways[way];

		if (!word) {
			free = way;
		} else if ((word & ~NAPI_TIME_MASK) == tag) {
			set->ways[way] = begun;
			napi_add_gap(row, word, now);
			return;
		}
	}
	if (!full)
		return;
	if (free == 0)
		set->ways[0] = begun;
	else if (free == 1)
		set->ways[1] = begun;
	else if (free == 2)
		set->ways[2] = begun;
	else if (free == 3)
		set->ways[3] = begun;
	else
		row->collided++;
}

handler napi_on_napi_poll(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *napi = (void *)ctx[0];
	s32 work = ctx[1], budget = ctx[2];
	u64 number = napi_number(napi);
	struct napi_row *poll = napi_row_of(cpu, napi, number, budget, now);
	/* netpoll polls with a budget of 0, for the sake of what was sent: never full. */
	bool full = budget > 0 && work >= budget;

	if (!poll)
		return;
	poll->used_ns = now;
	poll->polls++;
	if (work > 0)
		poll->work += work;
	if (full) {
		poll->full++;
		poll->streak++;
		if (poll->streak > poll->streak_max)
			poll->streak_max = poll->streak;
	} else {
		poll->streak = 0;
	}
	napi_gap(poll, number, full, now);
}
