"""The receiver: takes connections from many nodes, tells their alerts once, and notices who falls silent."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from tracer import units
from tracer.alerts.alert import Alert, State
from tracer.fleet.complaints import Complaints
from tracer.fleet.connection import Connection
from tracer.fleet.intake import Beat, Goodbye, Interval, Message
from tracer.fleet.roster import Roster
from tracer.recording.greeting import Hello

__all__ = ["CONNECTIONS_PER_NODE", "TICK_NS", "Limits", "Receiver"]

TICK_NS = 250_000_000
#: The agent and its sentinels; a node that comes back has its old connections for a while.
CONNECTIONS_PER_NODE = 8
_STRANGERS = 256
_MOST_HELD = 64 << 20
_FULL_AGAIN_NS = 600_000_000_000


@dataclass(frozen=True)
class Limits:
    """What one receiver takes: ``nodes``, ``keep_ns`` of their intervals in ``budget`` bytes, and ``connections``."""

    nodes: int = 1024
    keep_ns: int = 300_000_000_000
    budget: int = 256 << 20
    connections: int = 1024 * CONNECTIONS_PER_NODE

    def __str__(self) -> str:
        kept = f"the last {units.duration(self.keep_ns)} of at most {units.many(self.nodes, 'node')}"
        return f"keeps {kept} in {units.memory(self.budget)}; takes {units.many(self.connections, 'connection')}"


class Receiver:
    """The hub of all connections. ``tell`` gets every alert that says something new, ``say`` every line of trouble.

    Neither may block. ``alerts``, ``frames``: how many were told, and received; ``left_out``: frames that were not,
    because their node sent too many.
    """

    def __init__(
        self,
        limits: Limits,
        token: str | None,
        tls: ssl.SSLContext | None,
        tell: Callable[[Alert], None],
        say: Callable[[str], None],
    ) -> None:
        self.token = token
        self.tls = tls
        self.roster = Roster(limits.nodes, limits.keep_ns, limits.budget)
        self.alerts = 0
        self.frames = 0
        self.left_out = 0
        self.complaints = Complaints(say)
        self._tell = tell
        self._say = say
        self._full_said_ns = -_FULL_AGAIN_NS
        self._limits = limits
        self._connections: set[Connection] = set()
        self._strangers: dict[Connection, None] = {}
        self._held = 0

    def opened(self, connection: Connection) -> bool:
        """Take it up, unless there are too many. Of those that don't say who they are, the oldest gives way."""
        if len(self._connections) >= self._limits.connections:
            self.complain(connection, "too many", f"{len(self._connections)} connections already.")
            return False
        if len(self._strangers) >= _STRANGERS:
            oldest = next(iter(self._strangers))
            oldest.refuse("too many", f"{_STRANGERS} others have not said who they are, either.")
            self.closed(oldest)
        self._connections.add(connection)
        self._strangers[connection] = None
        return True

    def admits(self, connection: Connection, kind: int, now_ns: int) -> bool:
        """Return whether its node may send one more frame of this kind; count it otherwise."""
        node = self.roster.node(connection.hello) if connection.hello else None
        if node is None or node.admits(kind, now_ns):
            return True
        self.left_out += 1
        return False

    def received(self, connection: Connection, message: Message, now_ns: int) -> None:
        """Take a message; the first is a Hello. Raises RecordingError to refuse it."""
        self.frames += 1
        if isinstance(message, Hello):
            self._told(self.roster.greet(message, now_ns))
            if (name := self.roster.name(message)) != message.node:
                self.complain(
                    connection, "a name twice", f"another machine is called so, too: this one is told as {name}"
                )
            self._strangers.pop(connection, None)
            return
        hello = connection.hello
        assert hello is not None  # the intake lets nothing else through before
        self._told(self.roster.speaks(hello, now_ns))
        match message:
            case Interval():
                self.roster.keep(hello, message, now_ns)
            case Alert():
                self._alert(hello, message, now_ns)
            case Beat():
                self.roster.dropped(hello, message.dropped)
            case Goodbye():
                self.roster.goodbye(hello)

    def closed(self, connection: Connection) -> None:
        """Forget it, at once; asyncio says so later, when others may have been counted with it."""
        self._connections.discard(connection)
        self._strangers.pop(connection, None)
        self._held -= connection.held_before
        connection.held_before = 0

    def holds(self, connection: Connection) -> None:
        """Count what waits for the rest of its frame; where it is too much in all, whoever has most is closed."""
        self._held += connection.held - connection.held_before
        connection.held_before = connection.held
        if self._held > _MOST_HELD:
            most = max(self._connections, key=lambda other: other.held)
            most.refuse("too much", f"{units.memory(most.held)} of a frame while others send, too.")
            self.closed(most)

    def complain(self, connection: Connection, kind: str, text: str) -> None:
        """Say what is wrong with a connection."""
        who = f"{connection.peer} ({connection.hello.node})" if connection.hello else connection.peer
        self.complaints.add(kind, f"{who}: {kind}: {text}", time.monotonic_ns())

    def tick(self) -> None:
        """Look for silent nodes and for connections that take too long; call it every ``TICK_NS``."""
        now_ns = time.monotonic_ns()
        for connection in [other for other in self._connections if other.deadline_ns < now_ns]:
            connection.refuse("too slow", "nothing whole came in time.")
            connection.abort()  # also where it does not read why
        for alert in self.roster.tick(now_ns, TICK_NS):
            self._told(alert)
        if self.roster.cut_ns is not None and now_ns >= self._full_said_ns + _FULL_AGAIN_NS:
            self._full_said_ns = now_ns
            kept = units.duration(self.roster.cut_ns)
            self._say(
                f"{units.memory(self._limits.budget)} are full: {kept} are kept of the largest; --memory allows more"
            )
            self.roster.cut_ns = None

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            connection.abort()

    @property
    def totals(self) -> str:
        """One line of what was done."""
        return (
            f"{units.many(len(self.roster.nodes), 'node')}, {units.many(self.frames, 'frame')},"
            f"{f' {self.left_out} more left out,' if self.left_out else ''}"
            f" {units.many(self.alerts, 'alert')} told, {self.roster.silences} silent without a goodbye,"
            f" {units.many(self.complaints.total, 'complaint')}"
        )

    def _alert(self, hello: Hello, alert: Alert, now_ns: int) -> None:
        node = self.roster.node(hello)
        if node is not None and alert.state is not State.PENDING:
            self._told(node.news(alert, now_ns))

    def _told(self, alert: Alert | None) -> None:
        if alert is not None:
            self.alerts += 1
            self._tell(alert)
