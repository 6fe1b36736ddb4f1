"""A running trace: probes attached, intervals as they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from tracer.collect.choice import Choice, choose
from tracer.collect.collector import Collector
from tracer.collect.header import recording_header
from tracer.collect.request import Request
from tracer.collect.target import IN_HOST_PIDS, for_job
from tracer.errors import ProbeUnavailableError, UsageError
from tracer.kernel import cpus, privilege
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.fingerprint import restricted_sysctls
from tracer.kernel.job import Options
from tracer.kernel.session import Session, attach
from tracer.probe import Probe
from tracer.window import Window

__all__ = ["Request", "Trace"]

_Answer = TypeVar("_Answer")

#: The kernel's accounting of BPF run time is on no longer than this at a time, and no ring of records has more to hold.
_AT_ONCE_SECONDS = 1.0
#: A sleep may end so much early.
_ABOUT_NS = 1_000_000
_FOREIGN = (
    "not in the host's pid namespace: pids are the host's; no cgroups of holders, no tasks that wait and have not "
    "run yet, no functions of user programs"
)


class Trace:
    """Attaches on construction, detaches on ``close``; iterate over ``intervals``.

    ``notes`` are sentences the user should see: probes left out and why. ``attached`` is called when programs run,
    while this process has its privileges still and no thread.
    """

    def __init__(self, request: Request, attached: Callable[[Session], None] | None = None) -> None:
        foreign = not cpus.in_host_pids()
        if foreign and request.pid is not None:
            raise UsageError(
                f"--pid {request.pid}: in this pid namespace the number is another process's.",
                hint=IN_HOST_PIDS,
            )
        self._names = CgroupNames(foreign=foreign)
        self.request, notes = _on_this_node(request)
        self.request, more = for_job(self.request, self._names)
        notes += more
        choice = choose(request.probes, deep=request.deep, filters=self.request.applied)
        options = _options(self.request, self._names)
        # Before anything starts a thread: those that come later inherit it.
        cpus.leave_undisturbed()
        self._session = attach(choice.probes, options)
        try:
            if request.insist:
                self._insist(choice.named)
            if attached:
                self._session.settle()
                attached(self._session)
            self._session.delegate()
            self._restricted = restricted_sysctls()
            # Before the collector: its sources have threads.
            self._give_up_privileges()
            self._collector = Collector(self._session, self._names)
        except BaseException:
            self._session.close()
            raise
        self.began_ns = time.monotonic_ns()
        self._due_ns = self.began_ns + request.interval_ns
        self.notes = [*notes, *self._lacks(choice), *([_FOREIGN] if foreign else [])]
        self.seconds = self._session.seconds

    @property
    def probes(self) -> list[Probe]:
        """The probes that run."""
        return self._session.probes

    def trouble(self) -> str:
        """Return what there is to say of the process that keeps privileges for this one; "" when all is well."""
        return self._session.trouble()

    def header(self) -> dict[str, Any]:
        """Return the recording header of this trace; reading the fingerprint takes up to 150 ms."""
        asked = self.request
        return recording_header(self._session, asked.interval_ns, asked.filters, asked.labels, self._restricted)

    def intervals(self, stop: threading.Event, duration_ns: int | None = None) -> Iterator[list[Window]]:
        """Yield the windows of each interval as it ends, until ``stop`` is set or ``duration_ns`` is over.

        The last interval may be shorter, and includes what is not read every time.
        """
        end_ns = self.began_ns + duration_ns if duration_ns else None
        last = stop.is_set()
        while not last:
            left = self.seconds_left()
            if end_ns is not None:
                left = min(left, (end_ns - time.monotonic_ns()) / 1e9)
            self.wait(stop.wait, left)
            last = stop.is_set() or (end_ns is not None and time.monotonic_ns() >= end_ns - _ABOUT_NS)
            yield self.collect(complete=last)

    def wait(self, sleep: Callable[[float], _Answer], seconds: float) -> _Answer:
        """Sleep through ``seconds`` of an interval with ``sleep``, and return what it returns: true if disturbed.

        It is called once a second where something must not wait for the end of a longer interval: the kernel's
        accounting, which is to end then, and records of which there is room for few.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > _AT_ONCE_SECONDS:
            answer = sleep(_AT_ONCE_SECONDS)
            if answer:
                return answer
            self._collector.keep_up()
        return sleep(max(0.0, left))

    def seconds_left(self) -> float:
        """Return how long the current interval still lasts; 0 when it is due."""
        return max(0.0, (self._due_ns - time.monotonic_ns()) / 1e9)

    def collect(self, *, complete: bool = False) -> list[Window]:
        """End the current interval now. Intervals that were slept through are not caught up.

        ``complete`` includes what is not read every time.
        """
        windows = self._collector.collect(complete=complete)
        interval_ns = self.request.interval_ns
        late = max(0, time.monotonic_ns() - self._due_ns) // interval_ns
        self._due_ns += (1 + late) * interval_ns
        return windows

    def forget(self) -> None:
        """Have what is told once told again: names of stacks, for who can't read what came before."""
        self._collector.forget()

    def close(self) -> None:
        """Detach everything."""
        self._collector.close()
        self._session.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _give_up_privileges(self) -> None:
        probes = self._session.probes
        deep = any(probe.tier == "deep" for probe in probes)
        needed = [name for probe in probes for name in probe.capabilities]
        usual = privilege.KEPT_FOR_STACKS if deep else privilege.KEPT
        privilege.keep_only((*usual, *needed, *self._session.capabilities(), *self.request.keep))

    def _lacks(self, choice: Choice) -> list[str]:
        """Say which probes do not run here, and of those that were named, which run without a part."""
        # What auto chose runs as far as this kernel goes: the header has the rest, and reports and doctor say it.
        parts = [(name, reason) for name, reason in self._session.missing if name in choice.named]
        return [
            *_left_out({**choice.left_out, **self._session.refused}),
            *(f"{name} runs without a part: {reason}" for name, reason in parts),
        ]

    def _insist(self, named: set[str]) -> None:
        for name in sorted(named & self._session.refused.keys()):
            raise ProbeUnavailableError(
                f"{name}: {self._session.refused[name]}.", hint="--probes auto goes on with those that can run"
            )


def _on_this_node(request: Request) -> tuple[Request, list[str]]:
    """Return the request without CPUs that are not online, and a note that says so."""
    if request.cpus is None:
        return request, []
    online = cpus.online()
    try:
        chosen = set(cpus.parse_list(request.cpus))
    except ValueError:
        raise UsageError(f"--cpus {request.cpus!r} is no list of CPUs.", hint="for example --cpus 0-3,8") from None
    traced = _shown(chosen & set(online))
    if not traced:
        raise UsageError(f"--cpus {request.cpus}: none of them is online.", hint=f"online: {_shown(online)}")
    note = f"--cpus {request.cpus}: this node has {_shown(online)} online; only {traced} traced"
    return replace(request, cpus=traced), [] if chosen <= set(online) else [note]


def _left_out(reasons: Mapping[str, str]) -> list[str]:
    """Probes that were left out for the same reason share a note."""
    probes: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        probes.setdefault(reason, []).append(name)
    return [f"{', '.join(names)} left out: {reason}" for reason, names in probes.items()]


def _options(request: Request, names: CgroupNames) -> Options:
    online = cpus.online()
    chosen = frozenset(cpus.parse_list(request.cpus)) if request.cpus is not None else None
    clock = [cpu for cpu in online if cpu not in cpus.undisturbed() and (chosen is None or cpu in chosen)]
    constants = {**request.constants, **names.constants}
    if request.pid is not None:
        constants["FILTER_TGID"] = _existing(request.pid)
    if request.cgroup is not None:
        constants["FILTER_CGROUP"] = _group(request.cgroup, names)
    return Options(cpus.possible_count(), clock, chosen, constants, request.sentinels)


def _existing(pid: int) -> int:
    if not cpus.process_exists(pid):
        raise UsageError(f"--pid {pid}: no such process.", hint="give the id of a running process, not of a thread")
    return pid


def _group(path: str, names: CgroupNames) -> int:
    cgroup_id = names.id_of(path)
    if not cgroup_id:
        raise UsageError(f"--cgroup {path}: no such cgroup.", hint="give the path as /proc/PID/cgroup shows it")
    return cgroup_id


def _shown(numbers: Iterable[int]) -> str:
    """Return CPUs as the kernel lists them: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in sorted(numbers):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
