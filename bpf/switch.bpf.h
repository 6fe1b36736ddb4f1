/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What sched_switch says of the task that leaves. Probes that use it list task_struct.state (or __state). */

helper u32 switched_out_state(u64 *ctx)
{
#if SCHED_SWITCH__ARGS > 3
	/* Since fa2c3254d7cf ("sched/tracing: Don't re-read p->state when emitting sched_switch event") (in v5.18). */
	return ctx[3];
#else
	return read_kernel(ctx[1], u32, TASK_STRUCT__STATE);
#endif
}

/* Preempted, or it gave way while it could have run on: it waits from now on. */
helper bool switched_out_runnable(u64 *ctx)
{
	return (ctx[0] & 1) || !switched_out_state(ctx);
}
