/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The same piece of work again and again on one CPU; how long each took, as 32-bit nanoseconds on standard output. */
#include "bench.h"

/* Arithmetic alone: memory would measure the caches as well. */
static uint64_t work(uint64_t state, long steps)
{
	while (steps--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}

int main(int argc, char **argv)
{
	long steps = argc > 3 ? atol(argv[2]) : 0, count = argc > 3 ? atol(argv[3]) : 0;
	volatile uint64_t state = 88172645463325252ull;
	uint64_t began, ended;
	uint32_t *took;

	check(steps > 0 && count > 0, "quantum CPU STEPS COUNT");
	pin(argv[1]);
	took = calloc(count, sizeof(*took));
	check(took != NULL, "calloc");
	/* Touched first, so that no page fault is measured. */
	for (long i = 0; i < count; i++)
		took[i] = 1;
	state = work(state, steps * 10);
	began = now_ns();
	for (long i = 0; i < count; i++) {
		state = work(state, steps);
		ended = now_ns();
		took[i] = ended - began;
		began = ended;
	}
	check(fwrite(took, sizeof(*took), count, stdout) == (size_t)count, "fwrite");
	return 0;
}
