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

helper struct hardirq_row *hardirq_row_at(u32 cpu, u32 place)
{
	u32 index = cpu * HARDIRQ_ROWS + place;

	return hardirq_rows.lookup(&index);
}

helper void hardirq_name(struct hardirq_row *row, u64 name)
{
	/* Vectors have no name here, and a shorter name must not keep the end of a longer one. */
	((u64 *)row->name)[0] = 0;
	((u64 *)row->name)[1] = 0;
	((u64 *)row->name)[2] = 0;
	((u64 *)row->name)[3] = 0;
	if (name)
		bpf_probe_read_kernel_str(row->name, sizeof(row->name), (void *)name);
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

/* The row of a handler on this CPU, given to it now if it has none. Lines have consecutive numbers: no hash. */
helper struct hardirq_row *hardirq_row_of(u32 cpu, s32 irq, u64 action, u64 name, u64 now)
{
	struct hardirq_row *free = NULL;

#pragma unroll
	for (int step = 0; step < HARDIRQ_STEPS; step++) {
		struct hardirq_row *row = hardirq_row_at(cpu, (irq + step) & (HARDIRQ_PLACES - 1));

		if (!row)
			return NULL;
		if (row->action == action && row->irq == irq && row->used_ns)
			return row;
		if (!free && (!row->used_ns || now - row->used_ns > HARDIRQ_IDLE_NS))
			free = row;
	}
	if (!free)
		return hardirq_other(cpu);
	free->action = action;
	free->irq = irq;
	hardirq_name(free, name);
	return free;
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
