/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Included by bcc's own copy of uapi bpf.h, which needs nothing of it here. */
