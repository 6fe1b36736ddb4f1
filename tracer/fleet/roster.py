"""All nodes that a receiver knows, and the dead-man rule: who is silent without having said goodbye is reported."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tracer.alerts.alert import Alert
from tracer.errors import RecordingError
from tracer.fleet.deadman import back, silence
from tracer.fleet.intake import Interval
from tracer.fleet.node import Node
from tracer.recording.greeting import Hello

__all__ = ["SILENT_INTERVALS", "Roster"]

SILENT_INTERVALS = 3
#: Below this a busy network is as likely as a dead node, however short the interval.
_SHORTEST_NS = 1_000_000_000
# Their facts take a few milliseconds each: when all fall silent at once, the rest wait for the next tick.
_MOST_PER_TICK = 20
_SHOWN = 8  # characters of an id


class Roster:
    """At most ``most`` nodes by name, with the intervals of the last ``keep_ns`` in at most ``budget`` bytes.

    Times are the receiver's CLOCK_MONOTONIC. Of two machines with one name the second is told by its machine's id, too.

    Attributes:
        silences: how often a node fell silent.
        size: bytes of all that is kept.
        cut_ns: since ``budget`` was exceeded, what is left of the node that had to give way last; None before.
    """

    def __init__(self, most: int, keep_ns: int, budget: int) -> None:
        self.nodes: dict[str, Node] = {}
        self.silences = 0
        self.size = 0
        self.cut_ns: int | None = None
        self._most, self._keep_ns, self._budget = most, keep_ns, budget
        self._ticked_ns = 0
        self._names: dict[tuple[str, str], str] = {}

    def name(self, hello: Hello) -> str:
        """Return the name that a node is told by; once it has greeted, its own."""
        return self._names.get((hello.node, hello.machine), hello.node)

    def node(self, hello: Hello) -> Node | None:
        """Return the node that a process speaks for, if it is known."""
        return self.nodes.get(self.name(hello))

    def greet(self, hello: Hello, now_ns: int) -> Alert | None:
        """Take up a process of a node; return that the node is back, if it was missed.

        Raises RecordingError when there are too many nodes.
        """
        node = self.nodes[self._names[hello.node, hello.machine]] if self._is_known(hello) else self._new(hello, now_ns)
        rebooted = hello.boot_id != node.boot_id
        node.greet(hello)
        return self._heard(node, hello, now_ns, ", rebooted" if rebooted else "")

    def speaks(self, hello: Hello, now_ns: int) -> Alert | None:
        """Note a word of a process; return that its node is back, if it was missed."""
        node = self.node(hello)
        if node is None or hello.boot_id != node.boot_id:
            return None
        speaker = node.speakers.get(hello.source)
        if speaker is not None:
            # One that has come back may be heard before the goodbye of its earlier connection is read.
            speaker.gone = False
        return self._heard(node, hello, now_ns)

    def keep(self, hello: Hello, interval: Interval, now_ns: int) -> None:
        """Keep an interval, and forget the oldest where there are too many."""
        node = self.node(hello)
        if node is None:
            return
        self.size += node.keep(interval, now_ns)
        while node.kept[0].at_ns < now_ns - self._keep_ns:
            self.size -= node.forget_oldest()
        while self.size > self._budget:
            largest = max(self.nodes.values(), key=lambda node: node.size)
            self.size -= largest.forget_oldest()
            self.cut_ns = now_ns - largest.kept[0].at_ns if largest.kept else 0

    def dropped(self, hello: Hello, dropped: int) -> None:
        """Note what a process says it has dropped so far."""
        node = self.node(hello)
        if node is not None and hello.source in node.speakers:
            node.speakers[hello.source].dropped = dropped

    def goodbye(self, hello: Hello) -> None:
        """Expect nothing more of this process."""
        node = self.node(hello)
        if node is not None and hello.source in node.speakers and hello.boot_id == node.boot_id:
            node.speakers[hello.source].gone = True

    def tick(self, now_ns: int, period_ns: int) -> Iterator[Alert]:
        """Yield the nodes that have been silent for too long; call it every ``period_ns``.

        When it is called late, this process was held up, and may not have read what the nodes said: they get the time.
        """
        late_ns = now_ns - self._ticked_ns - period_ns if self._ticked_ns else 0
        self._ticked_ns = now_ns
        found = 0
        for node in self.nodes.values():
            if late_ns > period_ns:
                node.heard_ns = min(now_ns, node.heard_ns + late_ns)
            limit_ns = SILENT_INTERVALS * max(node.interval_ns, _SHORTEST_NS)
            if node.silent is None and node.expected and now_ns - node.heard_ns > limit_ns and found < _MOST_PER_TICK:
                found += 1
                self.silences += 1
                node.silent = silence(node, now_ns)
                yield node.silent

    def _is_known(self, hello: Hello) -> bool:
        return (hello.node, hello.machine) in self._names

    def _new(self, hello: Hello, now_ns: int) -> Node:
        if len(self.nodes) >= self._most:
            self._make_room()
        name = self._free_name(hello)
        self._names[hello.node, hello.machine] = name
        node = self.nodes[name] = Node(name, hello.boot_id, now_ns, time.time_ns())
        return node

    def _free_name(self, hello: Hello) -> str:
        ids = hello.machine or hello.boot_id
        for name in (hello.node, f"{hello.node} ({ids[:_SHOWN]})", f"{hello.node} ({ids} {hello.boot_id})"):
            if name not in self.nodes:
                return name
        raise RecordingError("its name is taken, however long it is told.")

    def _heard(self, node: Node, hello: Hello, now_ns: int, how: str = "") -> Alert | None:
        if not node.hears(hello.source, now_ns):
            return None
        silent, lasted_ns = node.silent, now_ns - node.heard_ns
        node.heard_ns, node.heard_unix_ns, node.silent = now_ns, time.time_ns(), None
        return back(silent, now_ns, lasted_ns, how) if silent else None

    def _make_room(self) -> None:
        """Forget a node of which nothing is expected, the one heard last the longest ago."""
        idle = [node for node in self.nodes.values() if node.silent or not node.expected]
        if not idle:
            raise RecordingError(f"there are {self._most} nodes already.", hint="--nodes allows more")
        gone = min(idle, key=lambda node: node.heard_ns)
        self.size -= gone.size
        del self.nodes[gone.name]
        self._names = {key: name for key, name in self._names.items() if name != gone.name}
