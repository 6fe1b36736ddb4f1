// SPDX-License-Identifier: GPL-2.0
/*
 * Code that does not let go of a CPU, in every way there is. Each way has a function of its own, whose name an alert
 * about it has to have.
 *
 *   insmod lab_spin.ko cpu=1 seconds=0
 *   echo softirq >/sys/module/lab_spin/parameters/start
 *
 * softirq, preempt (a kernel thread, preemption off), irqs (interrupts off), work, or rcu (in a read-side section).
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

static int cpu = 1;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "the CPU to hold");

static unsigned int seconds;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "for how long; 0: for ever");

/* Counted in delays: with interrupts off, the clock may stand still. */
static __always_inline bool spin_one_ms(u64 *spun_ms)
{
	mdelay(1);
	return !seconds || ++*spun_ms < seconds * 1000ULL;
}

static void spin_in_softirq(struct timer_list *timer)
{
	u64 spun_ms = 0;

	while (spin_one_ms(&spun_ms))
		cpu_relax();
}
static DEFINE_TIMER(softirq_timer, spin_in_softirq);

static int spin_with_preemption_off(void *unused)
{
	u64 spun_ms = 0;

	preempt_disable();
	while (spin_one_ms(&spun_ms))
		cpu_relax();
	preempt_enable();
	return 0;
}

static int spin_with_interrupts_off(void *unused)
{
	unsigned long flags;
	u64 spun_ms = 0;

	local_irq_save(flags);
	while (spin_one_ms(&spun_ms))
		cpu_relax();
	local_irq_restore(flags);
	return 0;
}

/* Others may run, and still this grace period does not end. */
static int spin_in_read_side_section(void *unused)
{
	u64 spun_ms = 0;

	rcu_read_lock();
	while (spin_one_ms(&spun_ms))
		cond_resched();
	rcu_read_unlock();
	return 0;
}

/* Tasks may run, other work of this CPU may not: its pool sees a worker that runs. */
static void spin_in_work(struct work_struct *work)
{
	u64 spun_ms = 0;

	while (spin_one_ms(&spun_ms))
		cond_resched();
}
static DECLARE_WORK(spinning_work, spin_in_work);

static void starve(struct work_struct *work)
{
}
static DECLARE_WORK(starving_work, starve);

static int spin_in_thread(int (*function)(void *))
{
	struct task_struct *thread = kthread_create_on_node(function, NULL, cpu_to_node(cpu), "lab_spin");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	return 0;
}

static int start(const char *how, const struct kernel_param *param)
{
	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	if (sysfs_streq(how, "softirq")) {
		softirq_timer.expires = jiffies + 1;
		add_timer_on(&softirq_timer, cpu);
		return 0;
	}
	if (sysfs_streq(how, "preempt"))
		return spin_in_thread(spin_with_preemption_off);
	if (sysfs_streq(how, "irqs"))
		return spin_in_thread(spin_with_interrupts_off);
	if (sysfs_streq(how, "rcu"))
		return spin_in_thread(spin_in_read_side_section);
	if (sysfs_streq(how, "work")) {
		queue_work_on(cpu, system_wq, &spinning_work);
		queue_work_on(cpu, system_wq, &starving_work);
		return 0;
	}
	return -EINVAL;
}
static const struct kernel_param_ops start_ops = {.set = start};
module_param_cb(start, &start_ops, NULL, 0200);

static int __init lab_spin_init(void)
{
	return 0;
}
module_init(lab_spin_init);

/* No exit: what spins can't be called back. */
MODULE_DESCRIPTION("foreshock's lab: CPUs that are held");
MODULE_LICENSE("GPL");
