"""Where normal ends. The only copy: rules, reports and docs/reading.md (checked by a test) use these values.

Each says where it comes from. None is a law: a threshold separates what is worth a sentence from what is not.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CPU_BUSY",
    "CPU_IMBALANCE",
    "CPU_INTERRUPTS",
    "DEVICE_DROPS",
    "DEVICE_DROPS_LEAST",
    "FEED_CRITICAL_NS",
    "FEED_WORST_NS",
    "HARDIRQ_NONE_RATE",
    "HARDIRQ_NONE_SHARE",
    "HARDIRQ_RATE",
    "HARDIRQ_SHARE",
    "HARDIRQ_WORST_NS",
    "LEAST_SAMPLES",
    "LEDGER_CRITICAL",
    "LEDGER_LEAST_NS",
    "LEDGER_LOST",
    "LEDGER_WAIT_NS",
    "LOSSES",
    "LOSSES_LEAST",
    "NAPI_BUDGET",
    "NAPI_FULL",
    "NAPI_GAP_WORST_NS",
    "NAPI_LEAST_POLLS",
    "OWN_CPU",
    "RUNQUEUE_CRITICAL_NS",
    "RUNQUEUE_P99_NS",
    "RUNQUEUE_WORST_NS",
    "SOFTIRQ_CRITICAL_NS",
    "SOFTIRQ_DELAY_P99_NS",
    "SOFTIRQ_DELAY_WORST_NS",
    "SOFTIRQ_RUN_WORST_NS",
    "STALL_NS",
    "UNSEEN",
]

_MS: Final = 1_000_000

# A quantile of fewer values than this is one or two single events: the rules on the worst speak for those.
LEAST_SAMPLES: Final = 200

# A slice of the fair scheduler is about 3 ms (base_slice_ns 0.7 ms times up to 4, by number of CPUs): one competitor
# costs one slice. Measured on an otherwise idle machine: p50 0.07 ms, worst 13 ms.
RUNQUEUE_P99_NS: Final = 5 * _MS
# Four times the worst of that idle machine, and more than ten competitors' slices.
RUNQUEUE_WORST_NS: Final = 50 * _MS
# Real-time throttling (sched_rt_runtime_us) lets a spinning FIFO task hold a CPU 950 ms at a time; a second is a hang
# to heartbeats and to collective operations.
RUNQUEUE_CRITICAL_NS: Final = 900 * _MS

# __do_softirq hands over to ksoftirqd after 2 ms (MAX_SOFTIRQ_TIME): beyond that, packets wait as tasks do.
SOFTIRQ_DELAY_P99_NS: Final = 2 * _MS
# A network driver's ring of 1024 descriptors fills in about 1 ms at a million packets a second, in 20 ms at 50,000.
SOFTIRQ_DELAY_WORST_NS: Final = 20 * _MS
# Drivers' and TX watchdogs speak at 5 s; a quarter of a second is many retransmission timeouts of RDMA and TCP.
SOFTIRQ_CRITICAL_NS: Final = 250 * _MS
# net_rx_action stops after 2 jiffies (netdev_budget_usecs): 8 ms at HZ=250. Longer means one poll or callback ran on.
SOFTIRQ_RUN_WORST_NS: Final = 10 * _MS

# NICs coalesce to 10,000-20,000 interrupts a second and queue; a line that storms made 330,000 in 20 s (kernel commit
# e9a9292e) and took a whole CPU. Rate alone is harmless while the share of time is small.
HARDIRQ_RATE: Final = 50_000
# Time of one CPU spent in one line's handlers. Timers and a busy NIC together stay below a few percent.
HARDIRQ_SHARE: Final = 0.20
# note_interrupt() disables a line at 99,900 unhandled of 100,000; a shared line shows the part of its other devices.
HARDIRQ_NONE_SHARE: Final = 0.50
HARDIRQ_NONE_RATE: Final = 100
# Handlers are meant to take microseconds; 5 ms with interrupts off loses timer ticks at HZ=250.
HARDIRQ_WORST_NS: Final = 5 * _MS

# A poll that uses its whole budget has more waiting: half of them full means that the CPU is the bottleneck.
NAPI_FULL: Final = 0.50
NAPI_LEAST_POLLS: Final = 1000
# Drivers poll with 64 (NAPI_POLL_WEIGHT), a few with 16; busy-polling sockets with 8, netpoll with 0.
NAPI_BUDGET: Final = 16
# After a full poll packets are known to wait: as long as a softirq may at worst.
NAPI_GAP_WORST_NS: Final = SOFTIRQ_DELAY_WORST_NS

# Of the accounted time of one CPU. Busy alone is what nodes are for: it matters together with waits.
CPU_BUSY: Final = 0.95
# Softirq and hardirq time together. 10 % is a busy NIC queue; at 30 % a task on this CPU runs a third slower.
CPU_INTERRUPTS: Final = 0.30
# Busiest minus median CPU: below this, cooperating workers still keep in step.
CPU_IMBALANCE: Final = 0.60

# Of the packets of a device. TCP throughput halves at about one loss in a thousand on long paths; RDMA expects none.
DEVICE_DROPS: Final = 0.001
DEVICE_DROPS_LEAST: Final = 10

# The kernel probe reports a CPU that has made no progress for this long; softlockup_panic comes at about 24 s.
STALL_NS: Final = 1_000 * _MS
# The watchdog thread runs 8-32 µs after its timer on a healthy machine, now and then 0.5 ms.
FEED_WORST_NS: Final = 100 * _MS
FEED_CRITICAL_NS: Final = 1_000 * _MS

# Of a probe's events. Below this no quantile up to p99 can move by a bucket.
LOSSES: Final = 0.001
# Fewer are what was open when the trace began: tasks that waited already, softirqs that were raised already.
LOSSES_LEAST: Final = 20
# Of all context switches, by the kernel's own count. An idle node makes few: LOSSES would speak of single ones.
UNSEEN: Final = 0.01
# Of one CPU, by the kernel's own accounting of the programs and of this process.
OWN_CPU: Final = 0.03

# Of a rank's time. A job that goes in step is as slow as its slowest rank: what one loses, all lose.
LEDGER_LOST: Final = 0.05
# Every fifth second of the whole job.
LEDGER_CRITICAL: Final = 0.20
# A process that lived for a moment may well have waited for most of it.
LEDGER_LEAST_NS: Final = 100 * _MS
# A rank that has not run for so long, and could, is a hang to all others.
LEDGER_WAIT_NS: Final = RUNQUEUE_CRITICAL_NS
