"""From what the user writes (``webhook:https://…``) to a sink."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from urllib.parse import parse_qsl

from tracer.alerts.engine import Identity
from tracer.errors import UsageError
from tracer.sinks.sink import Sink

__all__ = ["KINDS", "Options", "host_and_port", "open_sink"]

#: What follows the ``#`` of a specification, by name.
Options = dict[str, str]


def open_sink(spec: str, identity: Identity | None = None, *, interval_ns: int = 1_000_000_000) -> Sink:
    """Return the sink that ``spec`` names: ``KIND``, ``KIND:TARGET`` or ``KIND:TARGET#OPTION=VALUE&…``.

    ``identity`` and ``interval_ns`` say who speaks, and how often, to a stream's receiver; only a stream needs them.
    Raises UsageError when there is no such sink, OutputError when it can't be opened.
    """
    kind, _, rest = spec.partition(":")
    target, _, wanted = rest.partition("#")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        raise UsageError(
            f"no sink is called '{kind}'{f'; did you mean {near[0]!r}?' if near else '.'}",
            hint=f"there are {', '.join(sorted(KINDS))}",
        )
    options = dict(parse_qsl(wanted, keep_blank_values=True))
    opened, known = KINDS[kind]
    for option in options:
        if option not in known:
            raise UsageError(f"sink {kind} has no option '{option}'.", hint=f"it has {', '.join(known) or 'none'}")
    return opened(target, options, identity, interval_ns)


def _terminal(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    _no_target("terminal", target)
    from tracer.sinks.text import Terminal

    return Terminal()


def _json(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    from tracer.sinks.text import open_json

    return open_json(_target("json", "PATH, or json:- for standard output", target))


def _journald(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    _no_target("journald", target)
    from tracer.sinks.journald import Journal

    return Journal()


def _webhook(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    from tracer.sinks.webhook import Webhook

    return Webhook(_target("webhook", "URL", target), options)


def _alertmanager(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    from tracer.sinks.alertmanager import Alertmanager

    return Alertmanager(_target("alertmanager", "URL", target), options)


def _stream(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    from tracer.sinks.stream import Stream

    host, port = host_and_port(_target("stream", "HOST:PORT", target))
    if identity is None:
        raise ValueError("a stream says who speaks")
    return Stream(host, port, identity, interval_ns, options)


def _kmsg(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    _no_target("kmsg", target)
    from tracer.sinks.kernel_log import KernelLog

    return KernelLog.kmsg()


def _pmsg(target: str, options: Options, identity: Identity | None, interval_ns: int) -> Sink:
    _no_target("pmsg", target)
    from tracer.sinks.kernel_log import KernelLog

    return KernelLog.pmsg()


_HTTP = ("token-file", "ca-file")
#: How each kind is opened, and its options. What a kind needs is imported when it is asked for.
KINDS: dict[str, tuple[Callable[[str, Options, Identity | None, int], Sink], tuple[str, ...]]] = {
    "terminal": (_terminal, ()),
    "json": (_json, ()),
    "journald": (_journald, ()),
    "webhook": (_webhook, _HTTP),
    "alertmanager": (_alertmanager, _HTTP),
    "stream": (_stream, ("token-file", "tls", "tls-ca", "tls-cert", "tls-key")),
    "kmsg": (_kmsg, ()),
    "pmsg": (_pmsg, ()),
}


def host_and_port(text: str, *, lowest_port: int = 1) -> tuple[str, int]:
    """Return the parts of ``host:port``, ``[::1]:port``. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or not lowest_port <= int(port) < 1 << 16:
        raise UsageError(f"'{text}' is no HOST:PORT.", hint="for example collector.example:9750, or [::1]:9750")
    return host, int(port)


def _target(kind: str, form: str, target: str) -> str:
    if not target:
        raise UsageError(f"sink {kind} needs to know where to.", hint=f"{kind}:{form}")
    return target


def _no_target(kind: str, target: str) -> None:
    if target:
        raise UsageError(f"sink {kind} takes nothing after it, not '{target}'.", hint=kind)
