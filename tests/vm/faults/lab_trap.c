// SPDX-License-Identifier: GPL-2.0
/*
 * Checks that fail: warnings at a set rate, or one that is fatal, in an interrupt.
 *
 *   insmod lab_trap.ko how=warn per_s=4
 *   taskset -c 0 insmod lab_trap.ko how=bug cpu=1    from another CPU: else it is no interrupt
 */
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/smp.h>

static char *how = "warn";
module_param(how, charp, 0444);

static unsigned int per_s = 4;
module_param(per_s, uint, 0444);

static int cpu = 1;
module_param(cpu, int, 0444);

static int warn_again_and_again(void *unused)
{
	for (;;) {
		WARN(1, "lab: a reference count is negative");
		msleep(1000 / max(per_s, 1U));
	}
	return 0;
}

static void bug_in_interrupt(void *unused)
{
	BUG();
}

static int __init lab_trap_init(void)
{
	if (!strcmp(how, "warn"))
		return PTR_ERR_OR_ZERO(kthread_run(warn_again_and_again, NULL, "lab_trap"));
	if (!strcmp(how, "bug"))
		return smp_call_function_single(cpu, bug_in_interrupt, NULL, false);
	return -EINVAL;
}
module_init(lab_trap_init);

MODULE_DESCRIPTION("foreshock's lab: checks that fail");
MODULE_LICENSE("GPL");
