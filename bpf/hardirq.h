/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Rows that each CPU gives out on first use, a power of two; one more takes what finds no place. */
#define HARDIRQ_PLACES 64
#define HARDIRQ_ROWS 65

/* The number of an x86 vector's row: far above any interrupt line. */
#define HARDIRQ_FIRST_VECTOR 1000000
#define HARDIRQ_OTHER -1

/*
 * One interrupt handler, or vector, on one CPU; written by that CPU alone, whose interrupts do not nest.
 * Counts go on when a row is given to another handler, so that differences hold.
 */
struct hardirq_row {
	u64 action;  /* address of the irqaction; 0 for a vector */
	u64 used_ns; /* latest use; 0: never given out */
	s32 irq;
	u32 name_at;    /* lower half of its name's address; of the last row, of the latest name looked for */
	u64 none_count; /* calls that found nothing to do (IRQ_NONE) */
	u64 none_ns;
	u64 folded;      /* calls that are in this row because no place was left */
	struct hist run; /* of calls that handled something; its sum in the cache line of what is above */
	char name[32];
};
