/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A byte to and fro between two processes on one CPU: two context switches and two wake-ups per round. */
#include "bench.h"
#include <sys/wait.h>
#include <unistd.h>

static void pass_on(int from, int to)
{
	char byte;

	check(read(from, &byte, 1) == 1, "read");
	check(write(to, &byte, 1) == 1, "write");
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 0;
	int there[2], back[2];
	uint64_t began;

	check(rounds > 0, "pingpong CPU ROUNDS");
	pin(argv[1]);
	check(!pipe(there) && !pipe(back), "pipe");
	if (!fork()) {
		for (long i = 0; i < rounds; i++)
			pass_on(there[0], back[1]);
		return 0;
	}
	began = now_ns();
	check(write(there[1], "", 1) == 1, "write");
	for (long i = 1; i < rounds; i++)
		pass_on(back[0], there[1]);
	check(read(back[0], (char[1]){0}, 1) == 1, "read");
	printf("%.2f\n", (double)(now_ns() - began) / rounds);
	wait(NULL);
	return 0;
}
