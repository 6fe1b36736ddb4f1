/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the kernel says by tracepoint before it gives up, each rare: stalled grace periods, hung tasks, transmit
 * timeouts, OOM kills, warnings, hardware errors. None is in every kernel.
 *
 * Some precede the panic by microseconds, so they are sent at once. A storm is counted in whole and told in part.
 */
#include "foreshock.bpf.h"
#include "precursors.h"

MAPPED_ARRAY(precursors_row, precursors_rows, NR_CPUS * PRECURSORS_KINDS);

/* Count it, and return the event to fill and send; NULL when the limit holds it back. */
helper struct precursors_told *begin_told(u32 what, u64 now, u32 cpu)
{
	u32 index = cpu * PRECURSORS_KINDS + what;
	struct precursors_row *row = precursors_rows.lookup(&index);
	struct precursors_told *told;

	if (!row)
		return NULL;
	row->count++;
	if (!may_send(&row->limit, 0, now))
		return NULL;
	told = &row->told;
	begin_event(&told->event, PRECURSORS_TOLD_EVENT, now, cpu);
	told->what = what;
	told->pid = bpf_get_current_pid_tgid();
	bpf_get_current_comm(told->comm, sizeof(told->comm));
	__builtin_memset(told->name, 0, sizeof(told->name));
	__builtin_memset(told->text, 0, sizeof(told->text));
	told->number = 0;
	told->value = 0;
	return told;
}

helper void send_told(struct precursors_told *told, struct cpu_row *row)
{
	send_alarm(told, sizeof(*told), row);
}

/* Texts of the kernel, wherever they lie; an address that is none leaves them empty. */
helper void read_name(struct precursors_told *told, u64 address)
{
	if (address)
		bpf_probe_read_kernel_str(told->name, sizeof(told->name), (void *)address);
}

helper void read_text(struct precursors_told *told, u64 address)
{
	if (address)
		bpf_probe_read_kernel_str(told->text, sizeof(told->text), (void *)address);
}

helper void about_task(struct precursors_told *told, void *task)
{
	told->pid = read_kernel(task, u32, TASK_STRUCT__PID);
	((u64 *)told->comm)[0] = read_kernel(task, u64, TASK_STRUCT__COMM);
	((u64 *)told->comm)[1] = read_kernel(task, u64, TASK_STRUCT__COMM + 8);
}

/* name: of the RCU flavour. text: who notices, "SelfDetected" or "StallDetected". */
handler precursors_on_rcu_stall_warning(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_RCU_STALL, now, cpu);

	if (!told)
		return;
	read_name(told, ctx[0]);
	read_text(told, ctx[1]);
	send_told(told, row);
}

handler precursors_on_sched_process_hang(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_HUNG_TASK, now, cpu);

	if (!told)
		return;
	about_task(told, (void *)ctx[0]);
	send_told(told, row);
}

/* name: of the device. number: of the queue. text: its driver. value: its index. */
handler precursors_on_net_dev_xmit_timeout(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_TX_TIMEOUT, now, cpu);
	void *device = (void *)ctx[0];
	void *parent, *driver;

	if (!told)
		return;
	read_name(told, (u64)device + NET_DEVICE__NAME);
	told->number = (s32)ctx[1];
	told->value = read_kernel(device, u32, NET_DEVICE__IFINDEX);
	parent = read_kernel(device, void *, NET_DEVICE__DEV__PARENT);
	driver = read_kernel(parent, void *, DEVICE__DRIVER);
	read_text(told, read_kernel(driver, u64, DEVICE_DRIVER__NAME));
	send_told(told, row);
}

/* pid and comm: of the victim. */
handler precursors_on_mark_victim(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_OOM_KILL, now, cpu);

	if (!told)
		return;
#if MARK_VICTIM__ARGS > 1
	/* Since 72ba14deb40a ("mm: update mark_victim tracepoints fields"), and in stable kernels. */
	about_task(told, (void *)ctx[0]);
#else
	told->pid = ctx[0];
	__builtin_memset(told->comm, 0, sizeof(told->comm));
#endif
	send_told(told, row);
}

/* number: enum error_detector (0 KFENCE, 1 KASAN, 2 WARN). value: what it is about, for a WARN its place. */
handler precursors_on_error_report_end(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_ERROR_REPORT, now, cpu);

	if (!told)
		return;
	told->number = (u32)ctx[0];
	told->value = ctx[1];
	send_told(told, row);
}

/* number: enum hw_event_mc_err_type. name: label of the memory module. text: message. value: how many errors. */
handler precursors_on_mc_event(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_MEMORY_ERROR, now, cpu);

	if (!told)
		return;
	told->number = (u32)ctx[0];
	read_text(told, ctx[1]);
	read_name(told, ctx[2]);
	told->value = (u32)ctx[3];
	send_told(told, row);
}

#ifdef MCE__STATUS
/* number: the bank. value: MCi_STATUS. Of the CPU where it happened, which need not be this one. */
handler precursors_on_mce_record(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_MACHINE_CHECK, now, cpu);
	/* struct mce, or since v6.13 struct mce_hw_err, which begins with one. */
	void *record = (void *)ctx[0];

	if (!told)
		return;
	told->event.cpu = read_kernel(record, u32, MCE__EXTCPU);
	told->number = read_kernel(record, u8, MCE__BANK);
	told->value = read_kernel(record, u64, MCE__STATUS);
	send_told(told, row);
}
#else
#define precursors_on_mce_record(ctx, now, cpu, row)
#endif

/* name: of the device. number: severity, 0 not fatal, 1 fatal, 2 corrected. value: the status register. */
handler precursors_on_aer_event(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_PCIE_ERROR, now, cpu);

	if (!told)
		return;
	read_name(told, ctx[0]);
	told->value = (u32)ctx[1];
	told->number = (u8)ctx[2];
	send_told(told, row);
}

/* value: the page frame. number: enum mf_result. */
handler precursors_on_memory_failure_event(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_MEMORY_FAILURE, now, cpu);

	if (!told)
		return;
	told->value = ctx[0];
	told->number = (s32)ctx[2];
	send_told(told, row);
}

/* name: of the zone. number: enum thermal_trip_type. value: number of the trip point. */
handler precursors_on_thermal_zone_trip(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_THERMAL_TRIP, now, cpu);

	if (!told)
		return;
#ifdef THERMAL_ZONE_DEVICE__TYPE
	read_name(told, ctx[0] + THERMAL_ZONE_DEVICE__TYPE);
#endif
	told->value = (u32)ctx[1];
	told->number = (u32)ctx[2];
	send_told(told, row);
}

/* name: of the device. value: the address it wanted. number: flags. */
handler precursors_on_io_page_fault(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{
	struct precursors_told *told = begin_told(PRECURSORS_IOMMU_FAULT, now, cpu);

	if (!told)
		return;
	read_name(told, read_kernel((void *)ctx[0], u64, DEVICE__KOBJ__NAME));
	told->value = ctx[1];
	told->number = (s32)ctx[2];
	send_told(told, row);
}
