/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Datagrams to ourselves over a loopback of our own, without a context switch: one NET_RX softirq each. */
#include "bench.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	long rounds = argc > 2 ? atol(argv[2]) : 0;
	uint64_t began;
	char byte = 0;
	int sock;

	check(rounds > 0, "softirqs CPU ROUNDS");
	pin(argv[1]);
	check(!unshare(CLONE_NEWNET), "unshare");
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	check(sock >= 0, "socket");
	check(!ioctl(sock, SIOCSIFFLAGS, &loopback), "lo up");
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(!bind(sock, (void *)&address, sizeof(address)), "bind");
	began = now_ns();
	for (long i = 0; i < rounds; i++) {
		check(sendto(sock, &byte, 1, 0, (void *)&address, sizeof(address)) == 1, "sendto");
		check(recv(sock, &byte, 1, 0) == 1, "recv");
	}
	printf("%.2f\n", (double)(now_ns() - began) / rounds);
	return 0;
}
