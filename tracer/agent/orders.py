"""What the user asked the agent for, and what follows from that before anything is attached."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from tracer.alerts.rule import Rule
from tracer.blackbox.layout import DEFAULT_SIZE, Geometry
from tracer.closeup.terms import Terms
from tracer.errors import UsageError
from tracer.sinks import DirectSink, Sink, open_sink
from tracer.sinks.journald import SOCKET
from tracer.sinks.opening import host_and_port
from tracer.sinks.token import read_token

__all__ = ["Orders", "check", "open_sinks"]


@dataclass(frozen=True)
class Orders:
    """The options of ``foreshock agent``. ``stream`` is HOST:PORT or "", ``sinks`` are as ``open_sink`` reads them,
    of which one may be a stream instead.

    ``blackbox``: up to two paths, of ``blackbox_bytes`` each. ``closeup``: the terms of close-ups, None for none.
    """

    interval_ns: int = 1_000_000_000
    probes: str = "auto"
    sinks: tuple[str, ...] = ()
    shadow: tuple[str, ...] = ()
    blackbox: tuple[str, ...] = ()
    blackbox_bytes: int = DEFAULT_SIZE
    stream: str = ""
    token_file: str = ""
    state: Path | None = None
    foreground: bool = False
    closeup: Terms | None = None

    @property
    def stream_spec(self) -> str:
        """The stream as a sink's specification; "" for none."""
        given = [spec for spec in self.sinks if _is_stream(spec)]
        if not self.stream:
            return "".join(given[:1])
        target, _, options = self.stream.partition("#")
        more = urlencode({"token-file": self.token_file}) if self.token_file else ""
        options = "&".join(filter(None, (options, more)))
        return f"stream:{target}#{options}" if options else f"stream:{target}"

    @property
    def sink_specs(self) -> tuple[str, ...]:
        """The sinks, or where the user named none: the terminal to watch, else the journal, else JSON lines."""
        if self.sinks:
            return tuple(spec for spec in self.sinks if not _is_stream(spec))
        if self.foreground:
            return ("terminal",)
        return ("journald",) if os.path.exists(SOCKET) else ("json:-",)


def open_sinks(specs: Sequence[str]) -> tuple[list[DirectSink], list[Sink]]:
    """Return the sinks that never block, and the others. Raises UsageError and OutputError."""
    direct: list[DirectSink] = []
    slow: list[Sink] = []
    for spec in specs:
        sink = open_sink(spec)
        if isinstance(sink, DirectSink):
            direct.append(sink)
        else:
            slow.append(sink)
    return direct, slow


def _is_stream(spec: str) -> bool:
    return spec.partition(":")[0] == "stream"


def _files(orders: Orders) -> Iterator[str]:
    """Yield where the agent itself writes, links followed."""
    yield from map(os.path.realpath, orders.blackbox)
    if orders.state:
        yield os.path.realpath(orders.state)
    for kind, _, rest in (spec.partition(":") for spec in orders.sinks):
        path = rest.partition("#")[0]
        # Pipes and terminals may have several writers.
        if kind == "json" and path != "-" and (os.path.isfile(path) or not os.path.exists(path)):
            yield os.path.realpath(path)


def check(orders: Orders, rules: Mapping[str, Rule]) -> None:
    """Raise UsageError or OutputError for orders that can't be carried out anywhere: before anything is attached."""
    if sum(map(_is_stream, orders.sinks)) + bool(orders.stream) > 1:
        raise UsageError("there can be one stream.", hint="its receiver may serve several")
    if orders.token_file and not orders.stream:
        raise UsageError("--token-file is for a stream.", hint="add --stream HOST:PORT")
    if orders.stream_spec:
        target, _, options = orders.stream_spec.removeprefix("stream:").partition("#")
        host_and_port(target)
        for name, value in parse_qsl(options):
            if name == "token-file":
                read_token(value)
    for name in orders.shadow:
        if name not in rules:
            known = ", ".join(sorted(rules)) or "none"
            raise UsageError(f"--shadow {name}: there is no such rule.", hint=f"rules: {known}")
    if len(set(orders.blackbox)) != len(orders.blackbox) or len(orders.blackbox) > 2:
        raise UsageError("--blackbox takes one path, or two different ones.", hint="the second should be another disk")
    files = list(_files(orders))
    for path in files:
        if files.count(path) > 1:
            raise UsageError(f"{path} can't be two things at once.", hint="a file for each")
    Geometry.of_size(orders.blackbox_bytes)
    if orders.closeup:
        orders.closeup.check(orders.interval_ns)
