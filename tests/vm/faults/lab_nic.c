// SPDX-License-Identifier: GPL-2.0
/*
 * A network card whose hardware is a timer, and whose faults are those of real ones.
 *
 *   fault=none        sends what it is given
 *   fault=overrate    past limit_pps packets per second its completions are damaged: first every poll takes its whole
 *                     budget, and after strain_s seconds one of them names a packet that is not there
 *   fault=tx-stall    after fault_after packets nothing is completed any more; the driver resets the card at each
 *                     timeout, and after the last of resets times waits for it with preemption off, for ever
 *   fault=lost-irq    after fault_after packets the first queue has no interrupts; each timeout polls by hand
 *   fault=full-budget after fault_after packets every poll takes its whole budget, for ever
 *   fault=printk      after fault_after packets every packet is an error message
 *
 *   insmod lab_nic.ko fault=overrate limit_pps=2000
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>

#define QUEUES 2
#define RING 256
#define HARDWARE_PERIOD_NS (1 * NSEC_PER_MSEC)
#define RATE_PERIODS 100 /* the rate is that of 100 ms */

static char *fault = "none";
module_param(fault, charp, 0444);

static unsigned int limit_pps = 2000;
module_param(limit_pps, uint, 0444);

static unsigned int strain_s = 10;
module_param(strain_s, uint, 0444);

static unsigned int fault_after = 100;
module_param(fault_after, uint, 0444);

static unsigned int resets = 3;
module_param(resets, uint, 0444);

static bool timeout_callback = true;
module_param(timeout_callback, bool, 0444);
MODULE_PARM_DESC(timeout_callback, "whether the driver has one; without it the kernel does not watch its queues");

/* The driver adds at head, the hardware completes up to done, the poll frees up to tail. */
struct lab_queue {
	struct napi_struct napi;
	struct sk_buff *ring[RING];
	unsigned int head, done, tail;
};

struct lab_nic {
	struct net_device *device;
	struct lab_queue queues[QUEUES];
	struct hrtimer hardware;
	struct work_struct reset_work;
	atomic_t sent;
	unsigned int periods, sent_then, strained_periods, reset_count;
	bool strained, broken;
};

static struct net_device *lab_device;

static bool has_fault(const struct lab_nic *nic, const char *name)
{
	return atomic_read(&nic->sent) >= fault_after && !strcmp(fault, name);
}

/* --- Hardware ---------------------------------------------------------------------------------------------------- */

/* Past the limit the damage is done, whatever the rate is later. */
static void strain(struct lab_nic *nic)
{
	if (nic->strained && ++nic->strained_periods >= strain_s * (NSEC_PER_SEC / HARDWARE_PERIOD_NS))
		nic->broken = true;
	if (++nic->periods % RATE_PERIODS)
		return;
	if (atomic_read(&nic->sent) - nic->sent_then > limit_pps / 10)
		nic->strained = true;
	nic->sent_then = atomic_read(&nic->sent);
}

static enum hrtimer_restart lab_hardware_tick(struct hrtimer *timer)
{
	struct lab_nic *nic = container_of(timer, struct lab_nic, hardware);
	unsigned int i;

	if (!strcmp(fault, "overrate"))
		strain(nic);
	for (i = 0; i < QUEUES && !has_fault(nic, "tx-stall"); i++) {
		struct lab_queue *queue = &nic->queues[i];

		queue->done = READ_ONCE(queue->head);
		if (queue->done != queue->tail && !(i == 0 && has_fault(nic, "lost-irq")))
			napi_schedule(&queue->napi);
	}
	hrtimer_forward_now(timer, ns_to_ktime(HARDWARE_PERIOD_NS));
	return HRTIMER_RESTART;
}

/* --- Driver ------------------------------------------------------------------------------------------------------ */

static void lab_nic_complete(struct lab_nic *nic, struct lab_queue *queue, unsigned int *bytes, int budget)
{
	struct sk_buff *skb = queue->ring[queue->tail % RING];

	/* What the hardware completed is believed: a packet that is not there is a NULL dereference. */
	if (nic->broken)
		skb = NULL;
	*bytes += READ_ONCE(skb->len);
	if (has_fault(nic, "printk"))
		netdev_err(nic->device, "unknown completion %u\n", queue->tail);
	queue->ring[queue->tail++ % RING] = NULL;
	napi_consume_skb(skb, budget);
}

static int lab_nic_poll(struct napi_struct *napi, int budget)
{
	struct lab_queue *queue = container_of(napi, struct lab_queue, napi);
	struct lab_nic *nic = netdev_priv(napi->dev);
	struct netdev_queue *tx = netdev_get_tx_queue(napi->dev, queue - nic->queues);
	unsigned int packets = 0, bytes = 0;

	while (packets < budget && (queue->tail != READ_ONCE(queue->done) || nic->broken)) {
		lab_nic_complete(nic, queue, &bytes, budget);
		packets++;
	}
	netdev_tx_completed_queue(tx, packets, bytes);
	if (netif_tx_queue_stopped(tx) && queue->head - queue->tail < RING / 2)
		netif_tx_wake_queue(tx);
	if (nic->strained || has_fault(nic, "full-budget"))
		return budget;
	if (packets < budget)
		napi_complete_done(napi, packets);
	return packets;
}

static netdev_tx_t lab_nic_xmit(struct sk_buff *skb, struct net_device *device)
{
	struct lab_nic *nic = netdev_priv(device);
	u16 index = skb_get_queue_mapping(skb);
	struct lab_queue *queue = &nic->queues[index];
	struct netdev_queue *tx = netdev_get_tx_queue(device, index);

	if (queue->head - READ_ONCE(queue->tail) >= RING)
		return NETDEV_TX_BUSY;
	netdev_tx_sent_queue(tx, skb->len);
	device->stats.tx_packets++;
	device->stats.tx_bytes += skb->len;
	queue->ring[queue->head % RING] = skb;
	WRITE_ONCE(queue->head, queue->head + 1);
	atomic_inc(&nic->sent);
	if (queue->head - READ_ONCE(queue->tail) >= RING)
		netif_tx_stop_queue(tx);
	return NETDEV_TX_OK;
}

/* The card sets a bit when it is through with its reset. This one doesn't. */
static noinline void wait_for_reset_bit(void)
{
	preempt_disable();
	for (;;)
		mdelay(1);
}

static void lab_nic_reset(struct work_struct *work)
{
	struct lab_nic *nic = container_of(work, struct lab_nic, reset_work);
	unsigned int i;

	netdev_err(nic->device, "Reset adapter\n");
	if (++nic->reset_count >= resets)
		wait_for_reset_bit();
	rtnl_lock();
	netif_tx_disable(nic->device);
	for (i = 0; i < QUEUES; i++) {
		struct lab_queue *queue = &nic->queues[i];

		napi_disable(&queue->napi);
		for (; queue->tail != queue->head; queue->tail++)
			dev_kfree_skb_any(queue->ring[queue->tail % RING]);
		queue->done = queue->tail;
		netdev_tx_reset_queue(netdev_get_tx_queue(nic->device, i));
		napi_enable(&queue->napi);
	}
	netif_tx_wake_all_queues(nic->device);
	rtnl_unlock();
}

static void lab_nic_timeout(struct net_device *device, unsigned int index)
{
	struct lab_nic *nic = netdev_priv(device);

	if (has_fault(nic, "lost-irq"))
		napi_schedule(&nic->queues[index].napi);
	else
		schedule_work(&nic->reset_work);
}

static int lab_nic_open(struct net_device *device)
{
	struct lab_nic *nic = netdev_priv(device);
	unsigned int i;

	for (i = 0; i < QUEUES; i++)
		napi_enable(&nic->queues[i].napi);
	hrtimer_start(&nic->hardware, ns_to_ktime(HARDWARE_PERIOD_NS), HRTIMER_MODE_REL_PINNED);
	netif_tx_start_all_queues(device);
	return 0;
}

static int lab_nic_stop(struct net_device *device)
{
	struct lab_nic *nic = netdev_priv(device);
	unsigned int i;

	netif_tx_disable(device);
	hrtimer_cancel(&nic->hardware);
	for (i = 0; i < QUEUES; i++)
		napi_disable(&nic->queues[i].napi);
	return 0;
}

static const struct net_device_ops ops = {
	.ndo_open = lab_nic_open,
	.ndo_stop = lab_nic_stop,
	.ndo_start_xmit = lab_nic_xmit,
	.ndo_tx_timeout = lab_nic_timeout,
};

static const struct net_device_ops ops_without_timeout = {
	.ndo_open = lab_nic_open,
	.ndo_stop = lab_nic_stop,
	.ndo_start_xmit = lab_nic_xmit,
};

static int __init lab_nic_init(void)
{
	struct lab_nic *nic;
	int error, i;

	lab_device = alloc_etherdev_mq(sizeof(*nic), QUEUES);
	if (!lab_device)
		return -ENOMEM;
	strscpy(lab_device->name, "lab%d", IFNAMSIZ);
	eth_hw_addr_random(lab_device);
	lab_device->netdev_ops = timeout_callback ? &ops : &ops_without_timeout;
	lab_device->watchdog_timeo = 5 * HZ;
	nic = netdev_priv(lab_device);
	nic->device = lab_device;
	INIT_WORK(&nic->reset_work, lab_nic_reset);
	hrtimer_init(&nic->hardware, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	nic->hardware.function = lab_hardware_tick;
	for (i = 0; i < QUEUES; i++)
		netif_napi_add(lab_device, &nic->queues[i].napi, lab_nic_poll);
	error = register_netdev(lab_device);
	if (error)
		free_netdev(lab_device);
	return error;
}
module_init(lab_nic_init);

/* No exit: most of its faults can't be called back. */
MODULE_DESCRIPTION("foreshock's lab: a network card with faults");
MODULE_LICENSE("GPL");
