/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The loader passes the page size; bcc's ring-buffer macro multiplies by it. */
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096UL
#endif
