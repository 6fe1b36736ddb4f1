/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Rows for cgroups, given out on first use; a power of two. A cgroup that finds no row is counted as folded. */
#define RUNQUEUE_CGROUP_ROWS 512
#define RUNQUEUE_CGROUP_TRIES 8

/* One row per cgroup, written by every CPU: atomically. */
struct runqueue_cgroup_row {
	u64 cgroup_id; /* 0: not given out */
	u64 preempted; /* times a task of the group was switched out while it could have run on */
	struct hist wait;
};

struct runqueue_cgroup_folded {
	u64 waits;
};
