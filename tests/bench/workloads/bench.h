/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What every workload does: pin itself, read the clock. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static inline void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}
