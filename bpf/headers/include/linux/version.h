/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The loader passes LINUX_VERSION_CODE; only bcc's kprobe glue reads it. foreshock tests for features instead. */
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE 0
#endif
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
