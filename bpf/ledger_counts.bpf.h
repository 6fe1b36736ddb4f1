/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What processes lost, and to whom. Few pairs at a time are busy on a CPU: they have cells there, written by it alone.
 * Whoever has to go from its cell goes to the hash of all, which costs four times as much.
 */
#include "ledger.h"
#include "stacks.bpf.h"

MAPPED_ARRAY(stack_control, ledger_control, 1);
MAPPED_ARRAY(ledger_cell, ledger_cells, NR_CPUS * LEDGER_HALVES * LEDGER_CELLS);
BPF_HASH(ledger_counts, struct ledger_key, struct ledger_count, LEDGER_KEYS);

helper struct ledger_cell *ledger_cell_of(u32 tgid, u32 kind, u32 what, u32 half)
{
	u32 index = bpf_get_smp_processor_id() * LEDGER_HALVES + half;

	index = index * LEDGER_CELLS + ((tgid * 7 + what * 3 + kind) & (LEDGER_CELLS - 1));
	return ledger_cells.lookup(&index);
}

helper void ledger_spill(struct ledger_cell *cell, struct ledger_cpu *here)
{
	struct ledger_key key = cell->key;
	struct ledger_count first = cell->count;
	struct ledger_count *count = ledger_counts.lookup(&key);

	if (!count) {
		/* Another CPU may be first: then it is there now. */
		if (!ledger_counts.insert(&key, &first))
			return;
		count = ledger_counts.lookup(&key);
	}
	if (count) {
		/* Threads of one process wait on several CPUs at once. */
		__sync_fetch_and_add(&count->ns, first.ns);
	} else {
		here->use.full++;
		here->full_ns += first.ns;
	}
}

/* Add to what a process lost. Only with interrupts off: a CPU is inside of one half at a time. */
helper void ledger_add(u32 tgid, u32 kind, u32 what, u64 ns, u64 cgroup_id, char *comm, void *name,
		       struct ledger_cpu *here)
{
	u32 zero = 0, half;
	struct stack_control *control = ledger_control.lookup(&zero);
	struct ledger_cell *cell;

	if (!control)
		return;
	half = enter_stacks(&here->use, control) & (LEDGER_HALVES - 1);
	cell = ledger_cell_of(tgid, kind, what, half);
	if (!cell)
		goto out;
	if (cell->key.tgid == tgid && cell->key.what == what && cell->key.kind == kind) {
		cell->count.ns += ns;
		goto out;
	}
	if (cell->key.kind)
		ledger_spill(cell, here);
	cell->key.tgid = tgid;
	cell->key.what = what;
	cell->key.kind = kind;
	cell->key.half = half;
	cell->count.ns = ns;
	cell->count.cgroup_id = cgroup_id;
	((u64 *)cell->count.comm)[0] = comm ? ((u64 *)comm)[0] : 0;
	((u64 *)cell->count.comm)[1] = comm ? ((u64 *)comm)[1] : 0;
	if (name)
		bpf_probe_read_kernel_str(cell->count.comm, sizeof(cell->count.comm), name);
out:
	leave_stacks(&here->use);
}
