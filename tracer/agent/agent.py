"""The always-on process: probes, every rule once an interval, and what has to do with disks, names and slow sinks."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import TracebackType

from tracer.agent import keeping, placing
from tracer.agent.board import AGENT, Board
from tracer.agent.boxwatch import BoxWatch
from tracer.agent.closeups import Closeups
from tracer.agent.crew import Crew
from tracer.agent.desk import Desk
from tracer.agent.duty import Duty, open_stream
from tracer.agent.lookout import Lookout, kernel_side, settings_now
from tracer.agent.orders import Orders, check, open_sinks
from tracer.agent.sentinel import STAGGER_NS
from tracer.agent.sight import OPEN
from tracer.agent.symbols import Symbols
from tracer.alerts.alert import Alert
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import Rule, View
from tracer.blackbox import Recorder
from tracer.closeup import folder
from tracer.closeup.ring import encoded
from tracer.closeup.standby import Standby
from tracer.collect.trace import Request, Trace
from tracer.errors import RecordingError
from tracer.kernel.clock import Offset, offset_ns
from tracer.kernel.cpus import OnlineCpus
from tracer.kernel.job import MOST_SENTINELS
from tracer.kernel.machine import machine_id
from tracer.kernel.memlock import give_back_memory
from tracer.kernel.session import Session
from tracer.kernel.textfiles import text
from tracer.window import Window

__all__ = ["Agent"]

#: The sentinels come first, each in its turn.
_LATER_NS = (MOST_SENTINELS + 1) * STAGGER_NS
_READY_SECONDS = 15.0
_TEND_SECONDS = 1.0
#: An interval that comes so late says that this process, or the whole machine, was paused.
_PAUSE_NS = 1_000_000_000
#: Intervals for which what fires is not over, whatever sentinels say.
_HELD = 3
#: For a sentinel that has to be forked again, and for names of kernel code.
_KEPT = ("ipc_lock", "sys_nice", "syslog")


class Agent:
    """Attaches, forks the sentinels and opens everything on construction; ``run`` judges until it is told to stop.

    ``note`` gets lines about the agent itself, as they come. Raises UsageError, UnavailableError and OutputError for
    what can't be had. Construct it before this process starts a thread.
    """

    def __init__(self, orders: Orders, rules: Mapping[str, Rule], note: Callable[[str], None]) -> None:
        check(orders, rules)
        stream = orders.stream_spec
        self.orders = orders
        self.rules = tuple(rules.values())
        boot_id = text("/proc/sys/kernel/random/boot_id") or ""
        self.identity = Identity(os.uname().nodename, boot_id, offset_ns()[0], machine=machine_id())
        self._note = note
        self._said: set[str] = set()
        self._viewed_ns = 0
        self._offset = Offset()
        self._boxes = BoxWatch()
        self.closeups: Closeups | None = None
        self._engine = Engine(self.rules, self.identity, shadow=orders.shadow)
        self._restore()
        self._board = Board()
        self.direct, self.slow = open_sinks(orders.sink_specs)
        with contextlib.ExitStack() as opened:
            self._attach(opened, stream)
            self._open(opened, stream)
            self._opened = opened.pop_all()

    def run(self, stop: threading.Event, wakes: int, after: Callable[[View], None], alive: Callable[[], None]) -> None:
        """Judge every interval until ``stop`` is set, and ``wakes`` is readable.

        Calls ``after`` with each view, and ``alive`` every second.
        """
        while not stop.is_set():
            left = self.trace.seconds_left()
            if left > 0:
                self.trace.wait(lambda seconds: self._sleep(seconds, wakes, alive), left)
            else:
                after(self._interval())

    def close(self) -> None:
        """Detach, end the sentinels and say goodbye."""
        self._opened.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def told(self) -> int:
        """How many messages there were."""
        return self.desk.told

    @property
    def firing(self) -> list[Alert]:
        """The alerts that fire now."""
        return self._engine.firing

    def _restore(self) -> None:
        if self.orders.state is None:
            return
        keeping.prepare(self.orders.state)
        state, trouble = keeping.load(self.orders.state)
        try:
            if state:
                self._engine.restore(state, time.monotonic_ns())
        except RecordingError as error:
            trouble = f"{self.orders.state}: {error.message}"
        if trouble:
            self._note(trouble)

    def _attach(self, opened: contextlib.ExitStack, stream: str) -> None:
        if stream:
            import_module("tracer.agent.streaming")  # what sentinels need is there before they are forked
        cpus = placing.choose(placing.topology(placing.housekeeping()), MOST_SENTINELS)
        fast = tuple(rule for rule in self.rules if rule.fast)
        self._fast = {rule.name for rule in fast}

        settings = settings_now()
        terms = self.orders.closeup
        if terms:
            folder.prepare(terms.folder)

        def attached(session: Session) -> None:
            self.symbols = Symbols()
            self._board.put_settings(settings)
            self._lookout = Lookout(self.rules, self.orders.interval_ns, self.symbols.symbol, settings)
            duty = Duty(
                self.identity, fast, self.symbols.symbol, frozenset(self.orders.shadow), tuple(self.direct),
                stream, self.orders.interval_ns, self._engine.state(),
            )  # fmt: skip
            self.crew = Crew(session, duty, self._board, cpus)
            opened.callback(self.crew.close)
            if terms:
                standby = Standby(terms, session.unmap)
                self.closeups = Closeups(standby, session.probes, self.orders.interval_ns, self._note)
                opened.callback(self.closeups.close)

        request = Request(
            self.orders.probes, interval_ns=self.orders.interval_ns, sentinels=len(cpus), keep=_KEPT,
            constants=kernel_side(settings),
        )  # fmt: skip
        self.trace = Trace(request, attached)
        opened.callback(self.trace.close)
        # Before the programs: without them every CPU would look stuck.
        opened.callback(self.crew.close)

    def _open(self, opened: contextlib.ExitStack, stream: str) -> None:
        """Open what may have threads or processes: after the sentinels."""
        self.symbols.keep()
        opened.callback(self.symbols.close)
        self._online = OnlineCpus()
        opened.callback(self._online.close)
        self._keeper = keeping.Keeper(self.orders.state) if self.orders.state else None
        if self._keeper:
            opened.callback(self._keeper.close)
        header = self.trace.header() if self.orders.blackbox or stream else {}
        self.recorder = None
        if self.orders.blackbox:
            path, *more = self.orders.blackbox
            self.recorder = Recorder(path, self.orders.blackbox_bytes, header, mirror="".join(more))
            opened.callback(self.recorder.close)
            for note in self.recorder.notes:
                self._note(note)
        self.stream = open_stream(stream, self.identity, self.orders.interval_ns) if stream else None
        if self.stream:
            self.stream.introduce(header)
            opened.callback(self.stream.close)
        self.desk = Desk(
            self._board, self.direct, self.slow, self._note, stream=self.stream, recorder=self.recorder
        )  # fmt: skip
        opened.callback(self.desk.close)
        if self.closeups:
            opened.callback(self.closeups.close)
        self.desk.resume(self.firing)
        self._hear_ready()
        give_back_memory()

    def _hear_ready(self) -> None:
        until = time.monotonic() + _READY_SECONDS
        while not all(post.ready for post in self.crew.posts) and time.monotonic() < until:
            self._hear()
            time.sleep(0.01)

    def _sleep(self, seconds: float, wakes: int, alive: Callable[[], None]) -> bool:
        """Wait for the interval's end; meanwhile deliver and look after the sentinels. Return whether to stop."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._listen(min(left, _TEND_SECONDS), wakes):
                return True
            self._tend()
            alive()
        return False

    def _listen(self, seconds: float, wakes: int) -> bool:
        due = self.desk.send()
        poll = select.poll()
        for descriptor in (wakes, *self.crew.descriptors()):
            poll.register(descriptor, select.POLLIN)
        ready = dict(poll.poll(1000 * (seconds if due is None else min(seconds, due))))
        if ready.keys() - {wakes}:
            self._hear()
        return wakes in ready

    def _tend(self) -> None:
        notes = self.crew.watch(time.monotonic_ns(), self._online.read())
        for note in (*notes, *self._troubles()):
            self._note(note)

    def _hear(self) -> None:
        alerts, notes = self.crew.received()
        for alert in alerts:
            self.desk.forward(alert, _LATER_NS)
            if self.closeups:
                self.closeups.heard(alert, time.monotonic_ns())
        for note in notes:
            self._note(note)

    def _interval(self) -> View:
        windows = self.trace.collect()
        view = self._lookout.view(windows)
        self._board.put_settings(self._lookout.settings)
        for moved_ns in self._offset.moved():
            self._engine.tell_time(moved_ns)
        told = self._engine.judge(self._after_a_pause(view))
        firing, until_ns = self._engine.firing, time.monotonic_ns() + _HELD * self.orders.interval_ns
        self._board.hold(AGENT, told, firing, until_ns)
        self._board.put_pages(told, firing, until_ns)
        for alert in told:
            self.desk.deliver(alert, _LATER_NS if alert.rule in self._fast else 0)
        self.desk.send()
        frame = self._pass_on(windows)
        if self.closeups:
            due_ns = time.monotonic_ns() + int(self.trace.seconds_left() * 1e9)
            for alert in self.closeups.turn(self._engine, view, told, frame or encoded(windows), due_ns):
                self.desk.deliver(alert)
            self.desk.send()
        return view

    def _after_a_pause(self, view: View) -> View:
        """Return the view, without what seems not to have ended if this interval came late.

        After a pause of this process or of the whole machine everything looks stuck that has not run yet.
        """
        before, self._viewed_ns = self._viewed_ns, view.now_ns
        still = view.windows.get(OPEN)
        if still is None or not before or view.now_ns - before < 2 * self.orders.interval_ns + _PAUSE_NS:
            return view
        return replace(view, windows={**view.windows, OPEN: replace(still, rows=still.rows[:0])})

    def _pass_on(self, windows: Sequence[Window]) -> bytes:
        """Record and stream an interval; return its frame if it was made for that."""
        frame = b""
        if self.recorder:
            frame = self.recorder.windows(windows)
            if self.recorder.begins_again():
                self.trace.forget()
        if self.stream:
            self.stream.send_windows(windows)
            self.stream.beat(time.monotonic_ns())
        if self._keeper:
            self._keeper.keep(self._engine.state())
        return frame

    def _troubles(self) -> Iterator[str]:
        """Yield what went wrong in here, each once."""
        found = [f"rule {name} fails: {why}" for name, why in self._engine.broken.items()]
        found += [trouble] if (trouble := self.trace.trouble()) else []
        found += [self._keeper.error] if self._keeper and self._keeper.error else []
        yield from self._boxes.notes(self.recorder.status()) if self.recorder else ()
        yield from self.desk.troubles()
        for trouble in found:
            if trouble not in self._said:
                self._said.add(trouble)
                yield trouble
