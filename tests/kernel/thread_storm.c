/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Many threads that sleep, are woken all at once, and sleep again: usage: thread_storm THREADS ROUNDS */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Small, so that they fit; all in one mapping, since mappings are limited in number. */
#define STACK (16 << 10)

static _Atomic unsigned int round_now;
static atomic_long arrived;
static long rounds;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void *sleeper(void *unused)
{
	for (unsigned int round = 0; round < rounds; round++) {
		atomic_fetch_add(&arrived, 1);
		while (atomic_load(&round_now) == round)
			syscall(SYS_futex, &round_now, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
	}
	return unused;
}

static void wait_for(long threads, unsigned int round)
{
	while (atomic_load(&arrived) < threads * (round + 1))
		usleep(500);
	/* The last to arrive is still on its way to sleep. */
	usleep(2000);
}

int main(int argc, char **argv)
{
	struct sched_param first = {.sched_priority = 1};
	long threads = argc > 2 ? atol(argv[1]) : 0;
	pthread_t *ids = calloc(threads, sizeof(*ids));
	pthread_attr_t attributes;
	char *stacks;

	rounds = argc > 2 ? atol(argv[2]) : 0;
	check(threads > 0 && rounds > 0 && ids, "thread_storm THREADS ROUNDS");
	stacks =
		mmap(NULL, threads * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(stacks != MAP_FAILED, "mmap");
	pthread_attr_init(&attributes);
	for (long i = 0; i < threads; i++) {
		pthread_attr_setstack(&attributes, stacks + i * STACK, STACK);
		check(!pthread_create(&ids[i], &attributes, sleeper, NULL), "pthread_create");
	}
	/* In front of them all, so that none runs here before every one is awake. */
	check(!sched_setscheduler(0, SCHED_FIFO, &first), "sched_setscheduler");
	for (unsigned int round = 0; round < rounds; round++) {
		wait_for(threads, round);
		atomic_store(&round_now, round + 1);
		syscall(SYS_futex, &round_now, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%ld\n", threads * rounds);
	return 0;
}
