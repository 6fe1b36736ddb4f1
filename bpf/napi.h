/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"

/* Rows that each CPU gives out on first use, a power of two; one more takes what finds no place. */
#define NAPI_PLACES 64
#define NAPI_ROWS 65

/* NAPIs that are to be polled again because their last poll was full: NAPI_WAYS places for every hash. */
#define NAPI_SETS 4096
#define NAPI_WAYS 4

/* A word: 18 bits that tell the NAPI, never 0, then the time its poll ended, ns modulo 2^46 (19 h). 0 is free. */
#define NAPI_TIME_BITS 46

struct napi_set {
	u64 ways[NAPI_WAYS];
};

/*
 * One NAPI with one budget on one CPU; written by that CPU alone, but for the peak. Counts go on when a row is
 * given to another NAPI, so that differences hold.
 */
struct napi_row {
	u64 number;  /* of the NAPI, made from its address */
	u64 used_ns; /* latest poll; 0: never given out */
	u32 budget;
	u32 ifindex;
	u32 napi_id;
	u32 pad;
	char device[16];
	u64 polls;
	u64 work;
	u64 full;        /* polls that used the whole budget */
	u64 streak;      /* full polls in a row up to now */
	u64 streak_max;  /* most full polls in a row; set to 0 from outside as an interval ends */
	u64 folded;      /* polls that are in this row because no place was left */
	u64 collided;    /* full polls whose gap is not measured: all places were taken */
	u64 negative;    /* gaps below zero: the NAPI came from another CPU whose clock is ahead */
	struct hist gap; /* from the end of a full poll, on whichever CPU, to the end of the NAPI's next, here */
	u64 pad2[4];
};
