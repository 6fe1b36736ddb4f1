/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Who sleeps uninterruptibly since when: one word per task, HUNG_WAYS places for every pid. */
#define HUNG_SET_BITS 13
#define HUNG_SETS 8192
#define HUNG_WAYS 4

/* A word: the pid's upper bits plus one, HUNG_KILLABLE, then the time, ns modulo 2^52 (52 days). 0 is free. */
#define HUNG_TIME_BITS 52
#define HUNG_KILLABLE_BIT 52
#define HUNG_TAG_BITS 53

struct hung_set {
	u64 ways[HUNG_WAYS];
};

/* One row per CPU, written by that CPU alone. */
struct hung_row {
	u64 blocks;   /* uninterruptible sleeps that began here */
	u64 collided; /* of those, not noted: all places were taken */
	u64 pad[6];
};
