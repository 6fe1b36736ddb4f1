/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Waits for a CPU by the cgroup of the task that waited: who suffers, and who is only being throttled. */
#include "foreshock.bpf.h"
#include "task.bpf.h"
#include "switch.bpf.h"
#include "runqueue_cgroup.h"

MAPPED_ARRAY(runqueue_cgroup_row, runqueue_cgroup_rows, RUNQUEUE_CGROUP_ROWS);
MAPPED_ARRAY(runqueue_cgroup_folded, runqueue_cgroup_folded, NR_CPUS);

/*
 * Two CPUs may take the same free row at once; the second look makes the loser search on. What is left of that
 * race is the time between two instructions at a group's first wait.
 */
helper struct runqueue_cgroup_row *cgroup_row_of(u64 cgroup_id)
{
	u32 first = cgroup_id * 2654435761U;

#pragma unroll
	for (u32 try = 0; try < RUNQUEUE_CGROUP_TRIES; try ++) {
		u32 index = (first + try) & (RUNQUEUE_CGROUP_ROWS - 1);
		struct runqueue_cgroup_row *row = runqueue_cgroup_rows.lookup(&index);

		if (!row)
			return NULL;
		if (!row->cgroup_id)
			row->cgroup_id = cgroup_id;
		barrier();
		if (row->cgroup_id == cgroup_id)
			return row;
	}
	return NULL;
}

helper void hist_add_shared(struct hist *hist, u64 value)
{
	u64 slot = hist_find(value);

	if (slot >= HIST_SLOTS)
		return;
	__sync_fetch_and_add(&hist->sum, value);
	__sync_fetch_and_add(&hist->slots[slot], 1);
}

/* runqueue's handler ran before this one and left the wait of the task that is switched in. */
handler runqueue_cgroup_on_sched_switch(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	void *prev = (void *)ctx[1];
	struct runqueue_cgroup_row *group;
	struct runqueue_cgroup_folded *folded;

	if (switched_out_runnable(ctx) && read_kernel(prev, u32, TASK_STRUCT__PID)) {
		group = cgroup_row_of(task_cgroup_id(prev));
		if (group)
			__sync_fetch_and_add(&group->preempted, 1);
	}
	if (!row->waited_ns)
		return;
	group = cgroup_row_of(task_cgroup_id((void *)ctx[2]));
	if (group) {
		hist_add_shared(&group->wait, row->waited_ns);
		return;
	}
	folded = runqueue_cgroup_folded.lookup(&cpu);
	if (folded)
		folded->waits++;
}
