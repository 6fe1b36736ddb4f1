/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What bcc force-includes first. No kernel header follows it: types are below, layouts come from BTF. */
#define CONFIG_BPF_SYSCALL 1
#define CONFIG_64BIT 1
