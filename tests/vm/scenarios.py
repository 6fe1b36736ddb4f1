"""The lab's scenarios, as values: a fault, the settings that make it a panic, and what has to be said before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["QUICK", "SCENARIOS", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """One way for a kernel to die.

    Attributes:
        name: for the command line and the table.
        fault: a sentence on what goes wrong.
        commands: shell, in the guest; ``$FAULTS`` is the folder of the fault modules.
        before: the same, before the agent starts, as drivers are there before something goes wrong in them.
        panic: what the panic line says; "" where this kernel can't panic over it, and ``why`` says why.
        rules: the alerts that count, by rule; none: there is nothing to be seen before; without a panic, nobody may
            be paged.
        culprit: has to be in the culprit's stack, module or task, or in the sentence.
        countdown: ``"timer"`` is right within 20 % when first told, ``"slope"`` within 20 % at half-way, "" none.
        settings: sysctls, or files below /sys, set before the fault.
        quarter: the alert has to come in the first quarter of the time that the kernel gives.
        network_cpu: where the network's interrupts are. It has one queue here; a real card has one for each CPU, so
            that a sentinel's own still works.
        bound_s: from the fault to the panic, at most.
        why: for the page, what has to be known to read the result.
    """

    name: str
    fault: str
    commands: str
    panic: str
    before: str = ""
    rules: tuple[str, ...] = ()
    culprit: str = ""
    countdown: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    quarter: bool = False
    network_cpu: int = 0
    bound_s: float = 60
    why: str = ""


#: Unless what is in use has to stay in memory for a time, the kernel reads the same files again and again instead of
#: panicking: they come from this machine's memory, faster than from any drive.
_OOM_PANIC = {
    "vm.panic_on_oom": "1",
    "/sys/kernel/mm/lru_gen/enabled": "y",
    "/sys/kernel/mm/lru_gen/min_ttl_ms": "5000",
}
#: Left at 21 s, RCU complains first, and its lines on the serial console feed the watchdog: see softirq-lockup.
_RCU_LATER = {"/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout": "60"}
_SOFT_LOCKUP = {"kernel.softlockup_panic": "1", **_RCU_LATER}
_STALLED = ("soft-lockup",)
_LOCKUP_PANIC = "softlockup: hung tasks"

# The card's interrupts, and so its polls, are on the CPU that opens it.
_NIC_UP = (
    "taskset -c 1 ip link set lab0 up; ip address add 192.0.2.1/24 dev lab0; "
    "ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev lab0"
)
_TRAFFIC = "$PYTHON $LAB/traffic.py 192.0.2.2"


def _spin(how: str) -> str:
    return f"echo {how} >/sys/module/lab_spin/parameters/start"


def _spinner(cpu: int = 1, seconds: int = 0) -> str:
    return f"insmod $FAULTS/lab_spin.ko cpu={cpu} seconds={seconds}"


def _slow_console(start: str) -> str:
    return f"echo N >/sys/class/tty/ttyS0/console; echo {start} >/sys/module/lab_console/parameters/start"


_ALL = (
    Scenario(
        name="softirq-lockup",
        fault="A timer callback on CPU 1 does not end.",
        before=_spinner(),
        commands=_spin("softirq"),
        panic=_LOCKUP_PANIC,
        rules=_STALLED,
        culprit="spin_in_softirq",
        countdown="timer",
        settings=_SOFT_LOCKUP,
        quarter=True,
        why="RCU's stall timeout is 60 s here, as many distributions set it: at 21 s its report, printed by the stuck "
        "CPU, feeds that CPU's watchdog through the serial driver, and the panic comes 24 s after that.",
    ),
    Scenario(
        name="softirq-lockup-cpu0",
        fault="The same on CPU 0: each CPU in turn is the one that dies.",
        before=_spinner(cpu=0),
        commands=_spin("softirq"),
        panic=_LOCKUP_PANIC,
        rules=_STALLED,
        culprit="spin_in_softirq",
        countdown="timer",
        settings=_SOFT_LOCKUP,
        quarter=True,
        network_cpu=1,
    ),
    Scenario(
        name="network-lockup",
        fault="The same on CPU 1, which is the one that has the network's interrupts.",
        before=_spinner(),
        commands=_spin("softirq"),
        panic=_LOCKUP_PANIC,
        rules=_STALLED,
        countdown="timer",
        settings=_SOFT_LOCKUP,
        quarter=True,
        network_cpu=1,
        why="Nobody takes acknowledgements any more, nor gives back what was sent, so TCP lets a few messages of each "
        "connection out and no more: the first alert gets through, and that is all that is asked for here; then the "
        "receiver sees a silent node.",
    ),
    Scenario(
        name="task-lockup",
        fault="A kernel thread on CPU 1 turns preemption off and spins.",
        before=_spinner(),
        commands=_spin("preempt"),
        panic=_LOCKUP_PANIC,
        rules=_STALLED,
        culprit="spin_with_preemption_off",
        countdown="timer",
        settings=_SOFT_LOCKUP,
        quarter=True,
    ),
    Scenario(
        name="console-lockup",
        fault="A driver prints all of its state from a timer, to a serial console of 9600 baud.",
        before="insmod $FAULTS/lab_console.ko cpu=1",
        commands=_slow_console("dump"),
        panic=_LOCKUP_PANIC,
        rules=_STALLED,
        culprit="dump_all_descriptors",
        countdown="timer",
        settings=_SOFT_LOCKUP,
        quarter=True,
        why="The port's own driver feeds the watchdog with every line (`touch_nmi_watchdog`) and so never panics; it "
        "is taken off, and the same port written by a console that does not, as others do not.",
    ),
    Scenario(
        name="rcu-stall",
        fault="A kernel thread on CPU 1 spins with preemption off, and only RCU may panic.",
        before=_spinner(),
        commands=_spin("preempt"),
        panic="RCU Stall",
        rules=("rcu-stall",),
        culprit="spin_with_preemption_off",
        countdown="timer",
        settings={"kernel.panic_on_rcu_stall": "1"},
        quarter=True,
    ),
    Scenario(
        name="hung-task",
        fault="A kernel thread waits for an interrupt that was lost.",
        commands="insmod $FAULTS/lab_hang.ko",
        panic="hung_task: blocked tasks",
        rules=("hung-task",),
        culprit="wait_for_lost_interrupt",
        countdown="timer",
        settings={"kernel.hung_task_panic": "1", "kernel.hung_task_timeout_secs": "30"},
        bound_s=90,
        why="The detector's timeout is 30 s instead of 120 s.",
    ),
    Scenario(
        name="slab-leak",
        fault="A driver leaks 30 MB of slab objects per second.",
        commands="insmod $FAULTS/lab_leak.ko what=slab mb_per_s=30",
        panic="panic_on_oom is enabled",
        rules=("memory-exhaustion",),
        culprit="lab_leak",
        countdown="slope",
        settings=_OOM_PANIC,
        bound_s=150,
        why="What has been in use in the last 5 s stays in memory (`lru_gen/min_ttl_ms`); else this kernel thrashes "
        "for minutes.",
    ),
    Scenario(
        name="skb-leak",
        fault="A driver leaks 30 MB of packet buffers per second.",
        commands="insmod $FAULTS/lab_leak.ko what=skb mb_per_s=30",
        panic="panic_on_oom is enabled",
        rules=("memory-exhaustion",),
        culprit="kmalloc-2k",
        countdown="slope",
        settings=_OOM_PANIC,
        bound_s=150,
        why="Their data are of a slab that many share, so that is what can be named.",
    ),
    Scenario(
        name="nic-overrate",
        fault="A network card past its packet rate: completions go bad, polls take their whole budget, and 15 s later "
        "one names a packet that is not there.",
        before=f"insmod $FAULTS/lab_nic.ko fault=overrate limit_pps=1000 strain_s=15; {_NIC_UP}",
        commands=f"{_TRAFFIC} 300 2000",
        panic="Fatal exception in interrupt",
        rules=("napi-full-budget", "softirq-unserved", "soft-lockup"),
        culprit="lab0",
        bound_s=90,
        why="The kernel has no budget for this: `no countdown`.",
    ),
    Scenario(
        name="nic-tx-stall",
        fault="A card completes nothing any more; its driver resets it at each timeout, and waits for the third reset "
        "with preemption off.",
        before=f"insmod $FAULTS/lab_nic.ko fault=tx-stall resets=3; {_NIC_UP}",
        commands=f"{_TRAFFIC} 300 300",
        panic=_LOCKUP_PANIC,
        rules=("tx-timeout", "soft-lockup"),
        culprit="wait_for_reset_bit",
        settings=_SOFT_LOCKUP,
        bound_s=120,
        why="The stuck CPU itself reports the next timeout, which feeds its watchdog through the serial driver: the "
        "panic comes that much later than was said.",
    ),
    Scenario(
        name="nic-lost-interrupt",
        fault="A card's first queue loses its interrupt; the driver polls it by hand at each timeout.",
        before=f"insmod $FAULTS/lab_nic.ko fault=lost-irq; {_NIC_UP}",
        commands=f"{_TRAFFIC} 300 300",
        panic="",
        rules=("tx-timeout",),
        culprit="lab0",
        bound_s=40,
        why="Nothing panics: the card limps, five seconds at a time.",
    ),
    Scenario(
        name="nic-full-budget",
        fault="A card's driver says for ever that there is more to poll.",
        before=f"insmod $FAULTS/lab_nic.ko fault=full-budget; {_NIC_UP}",
        commands=f"{_TRAFFIC} 300 300",
        panic="",
        rules=("napi-full-budget",),
        culprit="lab0",
        bound_s=30,
        why="Nothing panics: the kernel moves such polls to a thread, which takes a CPU for ever.",
    ),
    Scenario(
        name="printk-flood",
        fault="A card's driver prints a line for every packet, to a serial console of 9600 baud.",
        before=f"insmod $FAULTS/lab_console.ko; insmod $FAULTS/lab_nic.ko fault=printk; {_NIC_UP}",
        commands=f"{_slow_console('console')}; {_TRAFFIC} 300 300",
        panic="",
        rules=_STALLED,
        culprit="lab_nic_poll",
        settings=_SOFT_LOCKUP,
        bound_s=40,
        why="Nothing panics: after each poll of 64 packets, some seconds, the kernel lets others in. Of the first one "
        "nobody can know that; then the countdown is taken back.",
    ),
    Scenario(
        name="warn-storm",
        fault="A check fails twice a second, and 60 warnings are the limit.",
        commands="insmod $FAULTS/lab_trap.ko how=warn per_s=2",
        panic="warn_limit",
        rules=("kernel-warnings",),
        countdown="slope",
        settings={"kernel.warn_limit": "60"},
        bound_s=90,
    ),
    Scenario(
        name="workqueue-stall",
        fault="A work item on CPU 1 does not end, and others of that CPU wait behind it.",
        before=_spinner(seconds=40),
        commands=_spin("work"),
        panic="",
        rules=("workqueue-stall", "long-work"),
        culprit="spin_in_work",
        bound_s=40,
        why="Debian's kernel is built without the workqueue watchdog.",
    ),
    Scenario(
        name="hard-lockup",
        fault="A kernel thread on CPU 1 spins with interrupts off.",
        before=_spinner(seconds=20),
        commands=_spin("irqs"),
        panic="",
        rules=("hard-lockup",),
        culprit="lab_spin",
        settings={"kernel.softlockup_panic": "0"},
        bound_s=30,
        why="The emulated machine has no NMI to see it with.",
    ),
    Scenario(
        name="null-dereference",
        fault="The kernel dereferences NULL (sysrq-c).",
        commands="echo c >/proc/sysrq-trigger",
        panic="sysrq triggered crash|Fatal exception",
        bound_s=20,
    ),
    Scenario(
        name="bug-in-interrupt",
        fault="A check fails for good in an interrupt on CPU 1.",
        commands="taskset -c 0 insmod $FAULTS/lab_trap.ko how=bug cpu=1",
        panic="Fatal exception in interrupt",
        bound_s=20,
    ),
    Scenario(
        name="calm",
        fault="Nothing: ten minutes of a node that now and then starts programs, reads and writes files, and sleeps.",
        commands="while sleep 5; do find /usr/lib -name '*.so' | head -c 100000 | gzip >/run/lab/found; sync; done",
        panic="",
        bound_s=600,
        why="Whatever pages here is a false alarm.",
    ),
)

SCENARIOS = {scenario.name: scenario for scenario in _ALL}

#: Those of ``make lab-quick``: one that is seen coming, one that is not.
QUICK = ("softirq-lockup", "null-dereference")
