"""Attached probes: their live maps, their events, what they cost."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType

import numpy as np

from tracer import histogram
from tracer.errors import NotAllowedError, ProbeUnavailableError, UnavailableError
from tracer.kernel import cpus, privilege, sources
from tracer.kernel.clock import HOST_TIME, in_host_time
from tracer.kernel.deeds import Deeds
from tracer.kernel.helper import Helper
from tracer.kernel.interpreter import find_interpreter
from tracer.kernel.job import RING_PAGES, SENTINEL_RING_PAGES, MapShape, Options, event_kinds, job, map_shapes, ordered
from tracer.kernel.loader import syscalls
from tracer.kernel.loading import ATTACH_SECONDS, Loaded, LoaderError, LoaderGoneError, run_loader
from tracer.kernel.maps import MappedArray
from tracer.kernel.ring import Ring
from tracer.kernel.sideband import Sideband, open_events
from tracer.kernel.symbols.history import History
from tracer.layouts import layout
from tracer.probe import Clock, Events, Probe

__all__ = ["Session", "attach"]


class Session:
    """Probes that are attached until ``close`` or the end of this process, however it ends."""

    def __init__(self, probes: Sequence[Probe], options: Options, loaded: Loaded) -> None:
        self.probes = [probe for probe in probes if probe.name not in loaded.refused]
        self.refused = loaded.refused
        self.missing = loaded.missing
        self.seconds = loaded.seconds
        self.options = options
        self.shapes: dict[str, MapShape] = map_shapes(self.probes, options.cpu_count)
        self._loaded = loaded
        #: Processes that are ranks of jobs, one for each, as the probe jobs knows them: others' tables tell them.
        self.ranks: frozenset[int] = frozenset()
        #: What processes were and are; None where nobody asks.
        self.programs = self._watch_programs()
        self._kinds = event_kinds(probes)
        self._late_clocks: dict[int, list[int]] = {}
        self._deeds: Deeds | Helper = Deeds(*_clocked(self.probes, options, loaded.programs))
        self._undelegated = ""
        self._arrays: dict[str, MappedArray] = {}
        for name, shape in self.shapes.items():
            self._arrays[name] = MappedArray(loaded.maps.pop(name), shape.dtype, shape.rows)
        pages = options.constants.get("RING_PAGES", RING_PAGES)
        self._ring = Ring(loaded.maps.pop("events"), pages * mmap.PAGESIZE) if self._arrays else None

    def array(self, name: str) -> np.ndarray:
        """Return the live rows of a mapped array, shape ``(rows,)``."""
        return self._arrays[name].rows

    def descriptor(self, name: str) -> int:
        """Return the descriptor of a plain map."""
        return self._loaded.maps[name]

    def events(self) -> Iterator[tuple[Probe, Events, np.ndarray]]:
        """Yield what came through the ring since the last call, one structured array per kind of event."""
        return self.sorted(self._ring.read() if self._ring else ())

    def sorted(self, read: Iterable[bytes]) -> Iterator[tuple[Probe, Events, np.ndarray]]:
        """Yield records of a ring as ``events`` does."""
        records: dict[int, list[bytes]] = {}
        for record in read:
            records.setdefault(int.from_bytes(record[:4], "little"), []).append(record)
        for kind, found in sorted(records.items()):
            probe, table = self._kinds[kind]
            dtype = layout(probe.name, table.layout)
            # The ring pads records to 8 bytes: take the struct's own size of each.
            yield probe, table, np.frombuffer(b"".join(item[: dtype.itemsize] for item in found), dtype=dtype)

    def sentinel_ring(self, number: int) -> Ring:
        """Return the ring of one of ``Options.sentinels``, for the one process that reads it."""
        descriptor = os.dup(self._loaded.maps[self.options.sentinel_rings[number]])
        return Ring(descriptor, SENTINEL_RING_PAGES * mmap.PAGESIZE)

    def settle(self) -> None:
        """Wait until the loader is gone, and with it the thread that waits for it: fork no earlier."""
        self._loaded.settle()

    def costs(self) -> dict[str, tuple[int, int, int]]:
        """Return ``(run_time_ns, run_count, recursion_misses)`` per program since load; see ``syscalls``."""
        return {name: syscalls.program_costs(program) for name, program in self._loaded.programs.items()}

    def counts_misses(self) -> bool:
        """Return whether the kernel counts runs that it skipped, so that 0 ``recursion_misses`` means none."""
        return all(syscalls.counts_misses(program) for program in self._loaded.programs.values())

    def handlers(self, program: str) -> list[str]:
        """Return the probes whose handlers run in ``program``."""
        return self._loaded.handlers[program]

    def add_clocks(self, cpu: int) -> bool:
        """Give a CPU that came online the clocks of the others; return whether it has them all.

        Those it had before it went offline are gone for good: the kernel takes them off.
        """
        for old in self._late_clocks.pop(cpu, []):
            os.close(old)
        try:
            self._late_clocks[cpu] = self._deeds.clocks(cpu)
        except OSError:
            return False
        return True

    def accounting(self) -> int:
        """Switch the kernel's accounting on for as long as the returned descriptor is open. Raises OSError."""
        return self._deeds.accounting()

    def stack(self, tid: int) -> bytes | None:
        """Return what ``hungtasks.kernel_stack`` does; None when there is no answer now."""
        try:
            return self._deeds.stack(tid)
        except OSError:
            return None

    def variables(self, pid: int) -> bytes:
        """Return what ``jobs.chosen`` does of a process's environment. Raises OSError when there is no answer now."""
        return self._deeds.variables(pid)

    def delegate(self) -> None:
        """Have a process of its own do what takes privileges from now on, so that this one can do without.

        Call it before this process starts a thread.
        """
        if not self._loaded.programs:
            return
        self.settle()
        deeds = self._deeds
        assert isinstance(deeds, Deeds), "once"
        try:
            self._deeds = Helper(deeds, self.unmap)
        except OSError as error:
            self._undelegated = f"no privileged helper: {error.strerror}"

    def trouble(self) -> str:
        """Return what there is to say of the process that does what takes privileges; "" when all is well."""
        return self._undelegated or self._deeds.trouble()

    def capabilities(self) -> tuple[str, ...]:
        """Return what reading maps and programs takes here, beyond their descriptors."""
        programs = [*self._loaded.programs.values()]
        # Since c8644cd0efe7 ("bpf: refine kernel.unprivileged_bpf_disabled behaviour") (in v5.19): nothing.
        if not programs or not privilege.needs(lambda: syscalls.program_costs(programs[0])):
            return ()
        # In a container with an older list of capabilities the second stands for the first.
        return ("bpf",) if "bpf" in privilege.held() else ("sys_admin",)

    @cached_property
    def map_bytes(self) -> int:
        """Kernel memory of all mapped arrays and the ring."""
        return sum(array.size_bytes for array in self._arrays.values()) + (self._ring.size_bytes if self._ring else 0)

    def close(self) -> None:
        """Detach and free everything."""
        for descriptor in (clock for clocks in self._late_clocks.values() for clock in clocks):
            os.close(descriptor)
        self._late_clocks = {}
        self._deeds.close()
        self._loaded.close()
        if self.programs:
            self.programs.close()
        self.unmap()

    def unmap(self) -> None:
        """Let go of the maps' memory, here: a forked process has use for none of it."""
        for array in self._arrays.values():
            array.close()
        self._arrays = {}
        if self._ring:
            self._ring.close()
            self._ring = None

    def _watch_programs(self) -> History | None:
        if not any(probe.reader == "stacks" for probe in self.probes):
            return None
        try:
            return History(Sideband(open_events(cpus.online())))
        except OSError as error:
            return History(Sideband([], error.strerror or str(error)))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _clocked(probes: Iterable[Probe], options: Options, programs: Mapping[str, int]) -> tuple[dict[int, int], set[int]]:
    """Return the programs that run by the clock, by their frequency in Hz, and the CPUs that may have them."""
    every = {hook.hz for probe in probes for hook in probe.hooks if isinstance(hook, Clock)}
    # Without the program there was no CPU for it at the start.
    clocks = {hz: programs.get(f"on_clock_{hz}hz", -1) for hz in sorted(every)}
    chosen = set(range(options.cpu_count) if options.cpus is None else options.cpus)
    return clocks, chosen - cpus.undisturbed()


def _not_allowed() -> UnavailableError:
    hint = "in a container: --cap-add=BPF --cap-add=PERFMON, or --privileged"
    if os.geteuid():
        return NotAllowedError("not allowed to trace: not root.", hint=hint)
    if privilege.in_host_users():
        return UnavailableError("not allowed to trace: root without CAP_BPF and CAP_PERFMON.", hint=hint)
    hint = "in a container: no user namespace (docker: --userns=host; podman: as root)"
    return UnavailableError("not allowed to trace: root of a user namespace only.", hint=hint)


def attach(probes: Sequence[Probe], options: Options) -> Session:
    """Attach ``probes`` (in the order of ``job.ordered``, what they require included).

    Probes this kernel can't carry are left out and listed in ``Session.refused`` with the reason. Raises
    UnavailableError when nothing can run at all, or when attaching takes longer than ``ATTACH_SECONDS``.
    """
    refused = {probe.name: reason for probe in probes if (reason := sources.refusal(probe))}
    session = _attach_all([probe for probe in probes if probe.name not in refused], options)
    session.refused.update(refused)
    return session


def _attach_all(probes: Sequence[Probe], options: Options) -> Session:
    in_kernel = [probe for probe in probes if probe.hooks]
    if not in_kernel:
        return Session(probes, options, Loaded())
    if not privilege.may_trace():
        raise _not_allowed()
    if not in_host_time():
        raise UnavailableError("not in the node's time namespace: the kernel's times are others.", hint=HOST_TIME)
    interpreter, deadline = find_interpreter(), time.monotonic() + ATTACH_SECONDS
    try:
        return _attach(probes, options, interpreter, deadline)
    except LoaderGoneError:
        raise
    except LoaderError as error:
        broken = _broken(in_kernel, options, interpreter, deadline)
        if not broken:
            raise
        rest = [probe for probe in probes if probe.name not in broken]
        if not any(probe.hooks for probe in rest):
            raise LoaderError(next(iter(broken.values())), hint=error.hint) from None
        session = _attach(rest, options, interpreter, deadline)
        session.refused.update(broken)
        return session


def _attach(probes: Sequence[Probe], options: Options, interpreter: str, deadline: float) -> Session:
    shapes = map_shapes(probes, options.cpu_count)

    def fill(maps: dict[str, int]) -> None:
        table = MappedArray(os.dup(maps["hist_edges_table"]), shapes["hist_edges_table"].dtype, 1)
        table.rows.view("u1")[:] = np.frombuffer(histogram.kernel_table(), dtype="u1")
        table.close()
        if options.cpus is not None:
            rows = MappedArray(os.dup(maps["cpus"]), shapes["cpus"].dtype, options.cpu_count)
            rows.rows["untraced"] = [cpu not in options.cpus for cpu in range(options.cpu_count)]
            rows.close()

    loaded = run_loader(job(probes, options), interpreter, fill, timeout=deadline - time.monotonic())
    if loaded.refused.keys() >= {probe.name for probe in probes}:
        loaded.close()
        name, reason = next(iter(loaded.refused.items()))
        raise ProbeUnavailableError(f"{name}: {reason}.", hint="foreshock probes lists what can run here")
    return Session(probes, options, loaded)


def _broken(probes: Sequence[Probe], options: Options, interpreter: str, deadline: float) -> dict[str, str]:
    """Find out which probes can't be loaded, each alone with what it requires: one must not cost the others."""
    broken: dict[str, str] = {}
    by_name = {probe.name: probe for probe in probes}
    for probe in probes:
        lacking = [name for name in probe.requires if name in broken]
        if lacking:
            broken[probe.name] = f"needs {', '.join(lacking)}, which can't run here"
            continue
        try:
            _attach(ordered([probe], by_name), options, interpreter, deadline).close()
        except LoaderGoneError:
            raise
        except LoaderError as error:
            broken[probe.name] = error.message
        except ProbeUnavailableError:
            continue
    return broken
