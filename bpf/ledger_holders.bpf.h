/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Who had a CPU while threads waited for it: the latest stays there one by one, earlier ones in blocks, which the reader
 * looks through.
 */
#include "ledger_counts.bpf.h"
#include "ledger_rows.bpf.h"

MAPPED_ARRAY(ledger_stay, ledger_stays, NR_CPUS * LEDGER_STAYS);
MAPPED_ARRAY(ledger_block, ledger_blocks, NR_CPUS * LEDGER_LOG_BLOCKS);
MAPPED_ARRAY(ledger_old, ledger_olds, NR_CPUS * LEDGER_OLDS);

/* A wait that is being shared out, from its end to its start. */
struct ledger_rest {
	u64 start_ns;
	u64 end_ns;     /* what comes after is done */
	u64 softirq_ns; /* the CPU's at end_ns */
	u64 hardirq_ns;
};

/*
 * Take off what began at started_ns and lasts until the rest's end: interrupts are counted here, what is left is
 * returned. Of what began before the wait, they are shared in proportion.
 */
helper u64 ledger_take(struct ledger_task *task, struct ledger_rest *rest, u64 started_ns, u64 softirq_ns,
		       u64 hardirq_ns)
{
	u64 length = rest->end_ns - started_ns;
	u64 overlap = started_ns < rest->start_ns ? rest->end_ns - rest->start_ns : length;
	u64 softirq = rest->softirq_ns - softirq_ns;
	u64 hardirq = rest->hardirq_ns - hardirq_ns;

	rest->end_ns = started_ns;
	rest->softirq_ns = softirq_ns;
	rest->hardirq_ns = hardirq_ns;
	if (overlap < length) {
		softirq = softirq * overlap / length;
		hardirq = hardirq * overlap / length;
	}
	if (softirq + hardirq > overlap)
		return overlap;
	task->wait_softirq_ns += softirq;
	task->wait_hardirq_ns += hardirq;
	return overlap - softirq - hardirq;
}

helper struct ledger_stay *ledger_stay_at(u32 cpu, u32 number)
{
	u32 index = cpu * LEDGER_STAYS + (number & (LEDGER_STAYS - 1));

	return ledger_stays.lookup(&index);
}

/* The latest stays, as far back as they are there. */
helper void ledger_blame_stays(struct ledger_task *task, struct ledger_rest *rest, struct ledger_cpu *place,
			       struct ledger_cpu *here)
{
	u32 newest = place->stays_count;

#pragma clang loop unroll(disable)
	for (u32 step = 0; step < LEDGER_STAYS; step++) {
		struct ledger_stay *stay = ledger_stay_at(task->cpu, newest - step);
		u64 own_ns, softirq_ns = task->wait_softirq_ns;

		if (!stay || rest->end_ns <= rest->start_ns || !stay->started_ns || stay->started_ns >= rest->end_ns)
			return;
		own_ns = ledger_take(task, rest, stay->started_ns, stay->softirq_ns, stay->hardirq_ns);
		ledger_add(task->tgid, LEDGER_HOLDER, stay->tgid, own_ns, stay->cgroup_id, stay->comm, NULL, here);
		softirq_ns = task->wait_softirq_ns - softirq_ns;
		if (softirq_ns)
			ledger_add(task->tgid, LEDGER_SOFTIRQ, stay->vector, softirq_ns, 0, NULL, NULL, here);
	}
}

/* Share out the last wait_ns before now among those who had the CPU there. */
helper void ledger_blame(struct ledger_task *task, u64 wait_ns, u64 now, struct ledger_cpu *place, struct cpu_row *row,
			 struct ledger_cpu *here)
{
	struct ledger_rest rest = {now - wait_ns, now, row->softirq_ns, row->hardirq_ns};
	struct ledger_old *old;
	u32 index;

	ledger_blame_stays(task, &rest, place, here);
	if (rest.end_ns <= rest.start_ns)
		return;
	index = bpf_get_smp_processor_id() * LEDGER_OLDS + (here->olds_count & (LEDGER_OLDS - 1));
	old = ledger_olds.lookup(&index);
	if (!old)
		return;
	old->start_ns = rest.start_ns;
	old->end_ns = rest.end_ns;
	old->tgid = task->tgid;
	old->cpu = task->cpu;
	here->olds_ns += rest.end_ns - rest.start_ns;
	barrier();
	here->olds_count++;
}

/* Add a stay to the block that is being filled, under its process. */
helper void ledger_fill_block(struct ledger_block *block, struct ledger_stay *stay, u64 own_ns)
{
#pragma unroll
	for (int index = 0; index < LEDGER_PARTS; index++) {
		struct ledger_part *part = &block->parts[index];

		if (part->used && part->tgid == stay->tgid) {
			part->ns += own_ns;
			return;
		}
		if (!part->used) {
			part->used = 1;
			part->tgid = stay->tgid;
			part->cgroup_id = stay->cgroup_id;
			((u64 *)part->comm)[0] = ((u64 *)stay->comm)[0];
			((u64 *)part->comm)[1] = ((u64 *)stay->comm)[1];
			part->ns = own_ns;
			return;
		}
	}
	/* A shell script, a build: another one of its name and cgroup stands for it. */
#pragma unroll
	for (int index = 0; index < LEDGER_PARTS; index++) {
		struct ledger_part *part = &block->parts[index];

		if (part->cgroup_id == stay->cgroup_id && ((u64 *)part->comm)[0] == ((u64 *)stay->comm)[0] &&
		    ((u64 *)part->comm)[1] == ((u64 *)stay->comm)[1]) {
			part->ns += own_ns;
			return;
		}
	}
	block->other_ns += own_ns;
}

helper struct ledger_block *ledger_block_at(u32 cpu, u32 number)
{
	u32 index = cpu * LEDGER_LOG_BLOCKS + (number & (LEDGER_LOG_BLOCKS - 1));

	return ledger_blocks.lookup(&index);
}

/* Count the stay that ends now in the block that is being filled, and begin another one when that is large enough. */
helper void ledger_end_stay(struct ledger_stay *ended, u64 now, u32 cpu, struct ledger_cpu *here, struct cpu_row *row)
{
	struct ledger_block *block = ledger_block_at(cpu, here->blocks_count);
	u64 softirq_ns = row->softirq_ns - ended->softirq_ns;
	u64 interrupted_ns = softirq_ns + row->hardirq_ns - ended->hardirq_ns;

	if (!block || !ended->started_ns)
		return;
	if (softirq_ns > block->most_ns) {
		block->most_ns = softirq_ns;
		block->vector = ended->vector;
	}
	ledger_fill_block(block, ended, now - ended->started_ns - interrupted_ns);
	if (++here->block_stays < LEDGER_BLOCK_STAYS || now - block->started_ns < LEDGER_BLOCK_NS)
		return;
	here->block_stays = 0;
	block = ledger_block_at(cpu, here->blocks_count + 1);
	if (!block)
		return;
	block->started_ns = now;
	block->softirq_ns = row->softirq_ns;
	block->hardirq_ns = row->hardirq_ns;
	block->other_ns = block->most_ns = 0;
#pragma unroll
	for (int index = 0; index < LEDGER_PARTS; index++)
		block->parts[index].used = 0;
	barrier();
	here->blocks_count++;
}

/* Note in the stay that goes on which vector's softirqs have the most of it. */
helper void ledger_note_softirq(u32 vector, u64 ns, u32 cpu, struct ledger_cpu *here)
{
	struct ledger_stay *stay = ledger_stay_at(cpu, here->stays_count);

	if (!stay || vector >= LEDGER_VECTORS)
		return;
	here->softirq_ns[vector] += ns;
	if (here->softirq_ns[vector] <= here->softirq_most_ns)
		return;
	here->softirq_most_ns = here->softirq_ns[vector];
	stay->vector = vector;
}

/* Most stays have none. */
helper void ledger_forget_softirqs(struct ledger_cpu *here)
{
	if (!here->softirq_most_ns)
		return;
	here->softirq_most_ns = 0;
#pragma unroll
	for (int vector = 0; vector < LEDGER_VECTORS; vector++)
		here->softirq_ns[vector] = 0;
}

/* Note who runs from now on; return the note. */
helper struct ledger_stay *ledger_push_stay(void *thread, u32 pid, u64 now, u32 cpu, struct ledger_cpu *here,
					    struct cpu_row *row)
{
	struct ledger_stay *ended = ledger_stay_at(cpu, here->stays_count);
	struct ledger_stay *stay = ledger_stay_at(cpu, here->stays_count + 1);

	if (!ended || !stay)
		return NULL;
	ledger_end_stay(ended, now, cpu, here, row);
	stay->started_ns = now;
	stay->softirq_ns = row->softirq_ns;
	stay->hardirq_ns = row->hardirq_ns;
	stay->cgroup_id = pid ? task_cgroup_id(thread) : 0;
	stay->tgid = pid ? read_kernel(thread, u32, TASK_STRUCT__TGID) : 0;
	stay->vector = 0;
	ledger_forget_softirqs(here);
	ledger_name(stay->comm, thread);
	here->stays_count++;
	return stay;
}
