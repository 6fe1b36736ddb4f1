// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory that is never given back, at a set rate.
 *
 *   insmod lab_leak.ko what=slab mb_per_s=40
 */
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#define OBJECT_BYTES 1024
#define STEPS_PER_S 20
/* Without GFP_KERNEL the leak would stop where the reserves begin, and the rest thrash for minutes. */
#define LEAK_FLAGS (GFP_KERNEL | __GFP_NOWARN)

static char *what = "slab";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "slab (cache lab_leak), skb or pages");

static unsigned int mb_per_s = 40;
module_param(mb_per_s, uint, 0444);

static struct kmem_cache *cache;

/* A cache with a constructor is not merged into another, so it has its own name in /proc/slabinfo. */
static void make_object(void *object)
{
	memset(object, 0, OBJECT_BYTES);
}

static size_t leak_slab_object(void)
{
	return kmem_cache_alloc(cache, LEAK_FLAGS) ? OBJECT_BYTES : 0;
}

static size_t leak_skb(void)
{
	struct sk_buff *skb = alloc_skb(OBJECT_BYTES, LEAK_FLAGS);

	return skb ? skb->truesize : 0;
}

static size_t leak_page(void)
{
	return alloc_page(LEAK_FLAGS) ? PAGE_SIZE : 0;
}

static int leak(void *function)
{
	size_t (*leak_one)(void) = function;

	for (;;) {
		size_t step = (size_t)mb_per_s * 1024 * 1024 / STEPS_PER_S, leaked = 0, got;

		while (leaked < step && (got = leak_one()))
			leaked += got;
		msleep(1000 / STEPS_PER_S);
	}
	return 0;
}

static int __init lab_leak_init(void)
{
	void *function;

	if (!strcmp(what, "slab"))
		function = leak_slab_object;
	else if (!strcmp(what, "skb"))
		function = leak_skb;
	else if (!strcmp(what, "pages"))
		function = leak_page;
	else
		return -EINVAL;
	cache = kmem_cache_create("lab_leak", OBJECT_BYTES, 0, 0, make_object);
	if (!cache)
		return -ENOMEM;
	return PTR_ERR_OR_ZERO(kthread_run(leak, function, "lab_leak"));
}
module_init(lab_leak_init);

/* No exit: nobody knows any longer where the memory is. */
MODULE_DESCRIPTION("foreshock's lab: leaks of kernel memory");
MODULE_LICENSE("GPL");
