/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* What the kernel says before it gives up; one number per tracepoint. */
#define PRECURSORS_RCU_STALL 0
#define PRECURSORS_HUNG_TASK 1
#define PRECURSORS_TX_TIMEOUT 2
#define PRECURSORS_OOM_KILL 3
#define PRECURSORS_ERROR_REPORT 4
#define PRECURSORS_MEMORY_ERROR 5
#define PRECURSORS_MACHINE_CHECK 6
#define PRECURSORS_PCIE_ERROR 7
#define PRECURSORS_MEMORY_FAILURE 8
#define PRECURSORS_THERMAL_TRIP 9
#define PRECURSORS_IOMMU_FAULT 10
#define PRECURSORS_KINDS 11

/* One such saying. What number and value are depends on the kind: see tracer/probes/precursors.py. */
struct precursors_told {
	struct event event;
	u32 what; /* PRECURSORS_* */
	u32 pid;  /* thread that it is about, else the one that ran */
	char comm[16];
	char name[32]; /* device, memory module, zone, grace period */
	char text[48];
	s64 number;
	u64 value;
};

/* One row per CPU and kind, written by that CPU alone. */
struct precursors_row {
	u64 count;
	struct event_limit limit;
	struct precursors_told told; /* the event is built here: it goes to several rings */
	u64 pad[2];
};
