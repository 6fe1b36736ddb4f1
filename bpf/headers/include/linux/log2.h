/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* bcc's stack-trace macro rounds its size up to a power of two at compile time. */
#define FORESHOCK_OR1(n) ((n) | ((n) >> 1))
#define FORESHOCK_OR2(n) (FORESHOCK_OR1(n) | (FORESHOCK_OR1(n) >> 2))
#define FORESHOCK_OR4(n) (FORESHOCK_OR2(n) | (FORESHOCK_OR2(n) >> 4))
#define FORESHOCK_OR8(n) (FORESHOCK_OR4(n) | (FORESHOCK_OR4(n) >> 8))
#define FORESHOCK_OR16(n) (FORESHOCK_OR8(n) | (FORESHOCK_OR8(n) >> 16))
#define roundup_pow_of_two(n) (FORESHOCK_OR16((n) - 1) + 1)
