/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread that goes to sleep waits for, by the system call that it is in: see LEDGER_CALLS in ledger.h. */
#include "ledger_rows.bpf.h"

/* Source: arch/x86/include/asm/thread_info.h. */
#define LEDGER_TS_COMPAT 0x2
/* Source: include/uapi/linux/magic.h. */
#define LEDGER_ANON_INODE_FS_MAGIC 0x09041934

MAPPED_ARRAY(ledger_call, ledger_calls, LEDGER_CALL_ROWS);

#if defined(PT_REGS__ORIG_AX) && defined(TASK_STRUCT__THREAD_INFO__STATUS)
#ifdef BPF_FUNC_TASK_PT_REGS
/* Since dd6e10fbd9fb ("bpf: Add bpf_task_pt_regs() helper") (in v5.15). bcc's own headers may not know it. */
static void *(*ledger_registers)(void *thread) = (void *)BPF_FUNC_TASK_PT_REGS;

helper u64 ledger_register(void *thread, u32 offset)
{
	return read_kernel(ledger_registers(thread), u64, offset);
}
#else
/* They end where the stack does. Source: task_pt_regs() in arch/x86/include/asm/processor.h. */
#define LEDGER_STACK_BYTES 16384
#define LEDGER_PT_REGS_BYTES 168

helper u64 ledger_register(void *thread, u32 offset)
{
	u64 stack = read_kernel(thread, u64, TASK_STRUCT__STACK), value = 0;

	bpf_probe_read_kernel(&value, sizeof(value),
			      (void *)(stack + LEDGER_STACK_BYTES - LEDGER_PT_REGS_BYTES + offset));
	return value;
}
#endif

helper u32 ledger_kind(u32 index)
{
	struct ledger_call *call = ledger_calls.lookup(&index);

	return call ? call->kind : LEDGER_SLEEP;
}

/* The kind of a file by its number. It may be closed meanwhile: then it is some kind, or none. */
helper u32 ledger_file_kind(void *thread, u32 number)
{
	void *table = read_kernel(read_kernel(thread, void *, TASK_STRUCT__FILES), void *, FILES_STRUCT__FDT);
	u64 at = read_kernel(table, u64, FDTABLE__FD) + 8 * (u64)number, inode, magic = 0;
	u16 mode = 0;
	u32 kind;

	if (number >= read_kernel(table, u32, FDTABLE__MAX_FDS))
		return LEDGER_SLEEP;
	if (bpf_probe_read_kernel(&at, sizeof(at), (void *)at) ||
	    bpf_probe_read_kernel(&inode, sizeof(inode), (void *)(at + FILE__F_INODE)) ||
	    bpf_probe_read_kernel(&mode, sizeof(mode), (void *)(inode + INODE__I_MODE)))
		return LEDGER_SLEEP;
	kind = ledger_kind(LEDGER_CALLS + (mode >> 12));
	/* What has no file, such as an eventfd, says that it is a regular one. */
	if (kind != LEDGER_FILE || bpf_probe_read_kernel(&at, sizeof(at), (void *)(inode + INODE__I_SB)) ||
	    bpf_probe_read_kernel(&magic, sizeof(magic), (void *)(at + SUPER_BLOCK__S_MAGIC)))
		return kind;
	return magic == LEDGER_ANON_INODE_FS_MAGIC ? LEDGER_POLL : kind;
}

helper u32 ledger_call_of(struct ledger_task *task, void *thread, u64 now)
{
	u64 number = ledger_register(thread, PT_REGS__ORIG_AX);
	u32 kind, file;

	/* 32-bit programs have other numbers. A page fault is -1. */
	if (number >= LEDGER_CALLS || read_kernel(thread, u32, TASK_STRUCT__THREAD_INFO__STATUS) & LEDGER_TS_COMPAT)
		return LEDGER_SLEEP;
	kind = ledger_kind(number);
	if (kind != LEDGER_BY_FILE)
		return kind;
	file = ledger_register(thread, PT_REGS__DI);
	if (file != task->file_number || now - task->file_seen_ns > LEDGER_FILE_NS) {
		task->file_kind = ledger_file_kind(thread, file);
		task->file_number = file;
		task->file_seen_ns = now;
	}
	return task->file_kind;
}
#else
helper u32 ledger_call_of(struct ledger_task *task, void *thread, u64 now)
{
	return LEDGER_SLEEP;
}
#endif
