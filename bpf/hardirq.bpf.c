/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How often each interrupt handler runs and for how long, by CPU.
 *
 * cpustate's handlers have run before these and left the length of the interrupt that just ended.
 */
#include "foreshock.bpf.h"
#include "hardirq.h"

MAPPED_ARRAY(hardirq_row, hardirq_rows, NR_CPUS * HARDIRQ_ROWS);

/* Places looked at before a handler goes to the common row. */
#define HARDIRQ_STEPS 8

/* A row that idle can be given to another handler: 69 s, longer than intervals are. */
#define HARDIRQ_IDLE_NS (1ULL << 36)

/* A name is read once per so many ns, as a power of two: 1 s. */
#define HARDIRQ_NAME_BITS 30

helper struct hardirq_row *hardirq_row_at(u32 cpu, u32 place)
{
	u32 index = cpu * HARDIRQ_ROWS + place;

	return hardirq_rows.lookup(&index);
}

helper void hardirq_name(struct hardirq_row *row, u64 name)
{
	/* Vectors have no name here, and a shorter name must not keep the end of a longer one. */
	u64 words[4] = {};

	if (name)
		bpf_probe_read_kernel_str(words, sizeof(words), (void *)name);
	/* Whole words: a reader of a name that stays the same never sees another. */
	((u64 *)row->name)[0] = words[0];
	((u64 *)row->name)[1] = words[1];
	((u64 *)row->name)[2] = words[2];
	((u64 *)row->name)[3] = words[3];
}

helper struct hardirq_row *hardirq_other(u32 cpu)
{
	struct hardirq_row *row = hardirq_row_at(cpu, HARDIRQ_PLACES);

	if (!row)
		return NULL;
	row->irq = HARDIRQ_OTHER;
	row->name[0] = 'o';
	row->name[1] = 't';
	row->name[2] = 'h';
	row->name[3] = 'e';
	row->name[4] = 'r';
	row->folded++;
	return row;
}

/* The place of a handler on this CPU, given to it now if it has none. Lines have consecutive numbers: no hash. */
helper struct hardirq_row *hardirq_place_of(u32 cpu, s32 irq, u64 action, u32 name_at, u64 now)
{
	struct hardirq_row *free = NULL;

#pragma unroll
	for (int step = 0; step < HARDIRQ_STEPS; step++) {
		struct hardirq_row *row = hardirq_row_at(cpu, (irq + step) & (HARDIRQ_PLACES - 1));

		if (!row)
			return NULL;
		if (row->action == action && row->name_at == name_at && row->irq == irq && row->used_ns)
			return row;
		if (!free && (!row->used_ns || now - row->used_ns > HARDIRQ_IDLE_NS))
			free = row;
	}
	if (!free)
		return NULL;
	free->action = action;
	free->name_at = name_at;
	free->irq = irq;
	return free;
}

/* A line can be freed and requested again for another device, with its irqaction and even its name where they were. */
helper struct hardirq_row *hardirq_row_of(u32 cpu, s32 irq, u64 action, u64 name, u64 now)
{
	struct hardirq_row *last = hardirq_row_at(cpu, HARDIRQ_PLACES), *row;

	if (!last)
		return NULL;
	/* To the verifier name is a pointer, or a number (6.1); what comes out of a map is a number in any case. */
	last->name_at = name;
	barrier();
	row = hardirq_place_of(cpu, irq, action, last->name_at, now);
	if (!row)
		return hardirq_other(cpu);
	if (row->used_ns >> HARDIRQ_NAME_BITS != now >> HARDIRQ_NAME_BITS)
		hardirq_name(row, name);
	return row;
}

handler hardirq_on_irq_handler_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *action = (void *)ctx[1];
	u64 name = read_kernel(action, u64, IRQACTION__NAME);
	struct hardirq_row *line;

	if (!row->hardirq_run_valid)
		return;
	line = hardirq_row_of(cpu, ctx[0], (u64)action, name, now);
	if (!line)
		return;
	line->used_ns = now;
	/* On a shared line every handler is asked, and all but the device's own answer IRQ_NONE. */
	if ((u32)ctx[2]) {
		hist_add(&line->run, row->hardirq_run_ns);
	} else {
		line->none_count++;
		line->none_ns += row->hardirq_run_ns;
	}
}

handler hardirq_on_vector_exit(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct hardirq_row *vector;

	if (!row->hardirq_run_valid)
		return;
	vector = hardirq_row_of(cpu, HARDIRQ_FIRST_VECTOR + (u32)ctx[0], 0, 0, now);
	if (!vector)
		return;
	vector->used_ns = now;
	hist_add(&vector->run, row->hardirq_run_ns);
}
