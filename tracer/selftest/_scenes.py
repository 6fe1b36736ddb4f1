"""The workloads that checks are about: each in a window of its own, all in one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from tracer.collect.trace import Request, Trace
from tracer.kernel import cpus, processes
from tracer.kernel.counts import Counts, read_counts
from tracer.selftest._evidence import Evidence, Scene
from tracer.window import Window
from tracer.workloads import Places, places
from tracer.workloads._process import Workload
from tracer.workloads.hog import Hog
from tracer.workloads.packets import Packets
from tracer.workloads.pipes import Pipes
from tracer.workloads.victim import Victim

__all__ = ["HOG_BURST", "PIPES_ROUNDS", "gather"]

HOG_BURST = 0.2
PIPES_ROUNDS = 5000
#: Short ones: many more than the switches that a kernel hides in that time.
SLEEPS_SECONDS, SLEEP = 1.5, 0.01


def _cast(where: Places) -> dict[str, dict[str, Workload]]:
    """Return the workloads of each scene. The last two make it long enough for the watchdog's beat of 4 s."""
    return {
        "hog": {"hog": Hog(where.busy, bursts=5, burst=HOG_BURST, rest=0.02), "victim": Victim(where.busy, 1.2)},
        "pipes": {"pipes": Pipes(PIPES_ROUNDS, cpu=where.busy)},
        "packets": {"packets": Packets(3000)},
        "loopback": {"packets": Packets(2000, loopback=True)},
        "spin": {"hog": Hog(where.busy, bursts=1, burst=1.5, rest=0, urgent=False)},
        "sleep": {"sleeper": Victim(where.free[0], SLEEPS_SECONDS, pause=SLEEP)},
    }


def gather(say: Callable[[str], None]) -> Evidence:
    """Attach every probe once, play every scene. ``say`` is told what goes on. Raises UnavailableError.

    Afterwards this process has fewer privileges and runs on the free CPUs only: it is meant to end soon.
    """
    where = places()
    with ExitStack() as stack:
        # Started before the trace takes privileges away from this process and its children.
        cast = _cast(where)
        for actors in cast.values():
            for actor in actors.values():
                stack.enter_context(actor)
        os.sched_setaffinity(0, where.free)
        say("attaching…")
        trace = stack.enter_context(Trace(Request(deep=True)))
        header = trace.header()
        opening, before = _boundary(trace)
        scenes = {}
        for number, (name, actors) in enumerate(cast.items(), start=1):
            say(f"scene {number} of {len(cast)}: {name}")
            told = _play(actors)
            windows, after = _boundary(trace)
            pids = {role: actor.pid for role, actor in actors.items()}
            scenes[name] = Scene(name, windows, before, after, told, pids)
            before = after
        probes = [probe["name"] for probe in header["probes"]]
        refused, ours = header["refused"], cpus.in_host_pids()
        return Evidence(opening, scenes, where, cpus.possible_count(), probes, refused, ours)


def _play(actors: Mapping[str, Workload]) -> dict[str, dict[str, Any]]:
    """Return what each says it did, and ``used_ns``, the CPU time that the kernel says all of that took."""
    before_ns = {role: processes.cpu_ns(actor.pid) for role, actor in actors.items()}
    for actor in actors.values():
        actor.go()
    told = {role: actor.result() for role, actor in actors.items()}
    return {
        role: {**told[role], "used_ns": processes.cpu_ns(actor.pid) - before_ns[role]} for role, actor in actors.items()
    }


def _boundary(trace: Trace) -> tuple[dict[tuple[str, str], Window], tuple[Counts, Counts]]:
    """End the window, with the kernel's counts on both sides of the moment."""
    first = read_counts()
    windows = trace.collect(complete=True)
    return {(window.probe, window.table): window for window in windows}, (first, read_counts())
