/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reads of a file past the page cache, waited for without sleeping: an interrupt of the disk for each, no switch. */
#include "bench.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK 4096

static void read_block(aio_context_t context, int file, char *buffer, long block)
{
	struct iocb request = {
		.aio_fildes = file,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = (unsigned long)buffer,
		.aio_nbytes = BLOCK,
		.aio_offset = block * BLOCK,
	};
	struct iocb *requests = &request;
	struct timespec none = {0, 0};
	struct io_event event;
	int got;

	check(syscall(SYS_io_submit, context, 1, &requests) == 1, "io_submit");
	do
		got = syscall(SYS_io_getevents, context, 0, 1, &event, &none);
	while (!got);
	check(got == 1 && event.res == BLOCK, "io_getevents");
}

int main(int argc, char **argv)
{
	long rounds = argc > 3 ? atol(argv[2]) : 0;
	aio_context_t context = 0;
	uint64_t began;
	char *buffer;
	long blocks;
	int file;

	check(rounds > 0, "hardirqs CPU ROUNDS FILE");
	pin(argv[1]);
	buffer = aligned_alloc(BLOCK, BLOCK);
	check(buffer != NULL, "aligned_alloc");
	file = open(argv[3], O_RDONLY | O_DIRECT);
	check(file >= 0, argv[3]);
	blocks = lseek(file, 0, SEEK_END) / BLOCK;
	check(blocks > 0, "lseek");
	check(!syscall(SYS_io_setup, 1, &context), "io_setup");
	began = now_ns();
	for (long i = 0; i < rounds; i++)
		read_block(context, file, buffer, i * 7919 % blocks);
	printf("%.2f\n", (double)(now_ns() - began) / rounds);
	return 0;
}
