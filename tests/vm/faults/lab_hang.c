// SPDX-License-Identifier: GPL-2.0
/*
 * A task that waits for hardware that has forgotten it.
 *
 *   insmod lab_hang.ko tasks=1
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>

static unsigned int tasks = 1;
module_param(tasks, uint, 0444);

static DECLARE_COMPLETION(interrupt);

static int wait_for_lost_interrupt(void *unused)
{
	wait_for_completion(&interrupt);
	return 0;
}

static int __init lab_hang_init(void)
{
	unsigned int i;

	for (i = 0; i < tasks; i++) {
		struct task_struct *thread = kthread_run(wait_for_lost_interrupt, NULL, "lab_hang/%u", i);

		if (IS_ERR(thread))
			return PTR_ERR(thread);
	}
	return 0;
}
module_init(lab_hang_init);

MODULE_DESCRIPTION("foreshock's lab: hung tasks");
MODULE_LICENSE("GPL");
