"""Whether network polling keeps up: packets per poll, polls that used their whole budget, gaps after those.

Per CPU, device and budget: a busy-polling application polls with a budget of its own (8 unless set), netpoll
with 0. The CPU's own queue of received packets (RPS, loopback, veth) has no device and is called ``backlog``.
A poll is full when it did as much work as its budget allows: more was waiting, and waits through the gap
until the NAPI is polled again, here or on another CPU.

Overhead: about 50 ns per poll, above an empty program.
Caveat: RDMA bypasses the network stack, so do AF_XDP sockets in part: port counters tell about them.
Caveat: ``work`` is what the driver says: received packets, though some drivers count sent ones too.
Caveat: a busy-polling application that is full is not behind: it asks for little at a time.
"""

from __future__ import annotations

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint

PROBE = Probe(
    name="napi",
    summary="whether network polling keeps up: work and full polls per device and CPU",
    tier="light",
    requires=("cpustate",),
    aliases=("netqtop",),
    hooks=(Tracepoint("napi:napi_poll", ("struct napi_struct *", "int", "int")),),
    members=(
        Member("napi_struct.dev"),
        Member("napi_struct.napi_id"),
        Member("net_device.ifindex"),
        Member("net_device.name"),
    ),
    maps=(
        Map("napi_rows", "napi_row", ("cpu", "NAPI_ROWS")),
        Map("napi_sets", "napi_set", ("NAPI_SETS",)),
    ),
    tables=(
        Table(
            "poll",
            help="polls by device, budget and CPU, and the gaps after full ones",
            map="napi_rows",
            by=("cpu", ""),
            keys=("ifindex", "device", "napi_id", "budget"),
            counters=("polls", "work", "full"),
            gauges=("streak",),
            peaks=("streak_max",),
            histogram="gap",
            used="used_ns",
            columns=(
                Column("device", "", "network device; backlog: the CPU's own queue; dummy: a driver's nameless one"),
                Column("napi_id", "", "the NAPI, that is the queue; 0 where the kernel gives none"),
                Column("budget", "packets", "most work one poll may do"),
                Column("polls", "polls", "polls, those that found nothing included"),
                Column("work", "packets", "packets that polls worked on"),
                Column("full", "polls", "polls that used the whole budget"),
                Column("streak", "polls", "full polls in a row, still going on at the end"),
                Column(
                    "streak_max", "polls", "most full polls in a row in the interval, counted from the first of them"
                ),
                Column("gap", "s", "from the end of a full poll to the end of the NAPI's next"),
            ),
        ),
    ),
    losses=(
        Loss(
            "folded",
            "napi_rows",
            "folded",
            "polls counted as 'other': more NAPIs on a CPU than it has rows",
            harmless=True,
        ),
        Loss("collided", "napi_rows", "collided", "full polls whose gap was not measured: no place to note them"),
        Loss("negative", "napi_rows", "negative", "gaps below zero, not counted"),
    ),
)
