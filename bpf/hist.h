/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Histograms as both sides know them: native-histogram schema 3 (growth 2^(1/8)), in seconds.
 * Bucket i holds (2^((i-1)/8), 2^(i/8)] s; the edges in integer nanoseconds are floor(1e9 * 2^(i/8)).
 *
 *   slots[0]                                  exactly zero
 *   slots[1 + i - HIST_FIRST_BUCKET]          bucket i, HIST_FIRST_BUCKET (1 ns) to HIST_LAST_BUCKET (128 s)
 *   slots[HIST_SLOTS - 1]                     above the last edge
 */
#define HIST_SCHEMA 3
#define HIST_FIRST_BUCKET -239
#define HIST_LAST_BUCKET 56
#define HIST_BUCKETS 296
#define HIST_SLOTS 298

struct hist {
	u64 sum;
	u32 slots[HIST_SLOTS];
};

/* Where a value can lie, by its top four bits: computed once by the loader's parent, see tracer/histogram.py. */
#define HIST_GUESSES 512

struct hist_edges {
	u64 edge_ns[HIST_SLOTS];
	u16 guess[HIST_GUESSES];
};
