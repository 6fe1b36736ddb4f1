// SPDX-License-Identifier: GPL-2.0
/*
 * A serial console of 9600 baud, and a driver that prints all of its state to it, from a softirq.
 *
 * The line is the first serial port's, so whoever reads that sees it all. Its own driver has to be taken off first
 * (echo N >/sys/class/tty/ttyS0/console): it feeds the kernel's watchdog with every line (touch_nmi_watchdog), which
 * hides what others, and other consoles, do to the CPU.
 *
 *   insmod lab_console.ko cpu=1 baud=9600
 *   echo dump >/sys/module/lab_console/parameters/start     or console, and others do the printing
 */
#include <linux/console.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/timer.h>

#define PORT 0x3f8
#define BITS_PER_CHARACTER 10

static int cpu = 1;
module_param(cpu, int, 0444);

static unsigned int baud = 9600;
module_param(baud, uint, 0444);

static void slow_console_write(struct console *console, const char *text, unsigned int length)
{
	while (length--) {
		outb(*text++, PORT);
		/* The panic itself need not wait for the line. */
		if (!oops_in_progress)
			udelay(USEC_PER_SEC * BITS_PER_CHARACTER / baud);
	}
}

static struct console slow_console = {
	.name = "ttyLAB",
	.write = slow_console_write,
	.flags = CON_ENABLED,
	.index = -1,
};

static void dump_all_descriptors(struct timer_list *timer)
{
	unsigned int i;

	for (i = 0;; i++)
		pr_err("lab_nic 0000:00:09.0: descriptor %8u: 0x%08x 0x%08x 0x%08x\n", i, i * 64, i * 1500,
		       0x80000000 | i);
}
static DEFINE_TIMER(timeout, dump_all_descriptors);

static int start(const char *value, const struct kernel_param *param)
{
	register_console(&slow_console);
	if (sysfs_streq(value, "dump")) {
		timeout.expires = jiffies + 1;
		add_timer_on(&timeout, cpu);
	}
	return 0;
}
static const struct kernel_param_ops start_ops = {.set = start};
module_param_cb(start, &start_ops, NULL, 0200);

static int __init lab_console_init(void)
{
	return baud && cpu >= 0 && cpu < nr_cpu_ids && cpu_online(cpu) ? 0 : -EINVAL;
}
module_init(lab_console_init);

/* No exit: a driver that prints can't be called back. */
MODULE_DESCRIPTION("foreshock's lab: a saturated serial console");
MODULE_LICENSE("GPL");
