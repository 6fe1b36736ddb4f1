"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from tracer.errors import UsageError

__all__ = ["DURATION", "INTERVAL", "OFFSET", "SIZE", "TRACING", "pstore_option", "refuse", "tracing_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_DURATION = re.compile("(?=.)" + "".join(rf"(?:\d+(?:\.\d+)?{unit})?" for unit in ("h", "m", "s", "ms")), re.ASCII)


#: A clock of 64-bit nanoseconds reaches further, but nothing recorded does.
_LONGEST_NS = 366 * 24 * _UNITS["h"]


class _Duration(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    """A length of time with its unit, as integer nanoseconds: ``shortest_ns`` to ``longest_ns``, for the ``reason``."""

    name = "duration"

    def __init__(self, shortest_ns: int = _UNITS["ms"], longest_ns: int = _LONGEST_NS, reason: str = "") -> None:
        self._shortest_ns = shortest_ns
        self._longest_ns = longest_ns
        self._reason = f"; {reason}" if reason else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if not _DURATION.fullmatch(text):
            self.fail(f"{value!r} is no duration: say for example 500ms, 30s, 5m, 1h30m", param, ctx)
        ns = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        if ns < self._shortest_ns:
            self.fail(f"{value!r} is too short: {self._bounds()}", param, ctx)
        if ns > self._longest_ns:
            self.fail(f"{value!r} is too long: {self._bounds()}{self._reason}", param, ctx)
        return int(ns)

    def _bounds(self) -> str:
        hours, rest = divmod(self._longest_ns, _UNITS["h"])
        longest = f"{rest // _UNITS['s']}s" if rest else f"{hours}h"
        return f"{self._shortest_ns // _UNITS['ms']}ms to {longest}"


DURATION = _Duration(10 * _UNITS["ms"])  # attaching takes longer than less
OFFSET = _Duration(0)  # a moment of a recording, from its start
#: Collecting takes a few milliseconds: shorter windows would show foreshock itself. The kernel side hands idle rows of
#: interrupts and NAPIs on after 69 s (HARDIRQ_IDLE_NS, NAPI_IDLE_NS): longer ones would mix two of them in one row.
INTERVAL = _Duration(
    10 * _UNITS["ms"],
    60 * _UNITS["s"],
    "interrupts unused for 69 s lose their row to others, which a longer window would mix up",
)


class _Size(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    """An amount of memory with its unit, as bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,9})(KiB|MiB|GiB)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size: say for example 64MiB, 1GiB", param, ctx)
        return int(match.group(1)) << {"KiB": 10, "MiB": 20, "GiB": 30}[match.group(2)]


SIZE = _Size()


def _cpu_list(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("the list is empty: say for example 0-3,8, or leave the option out", ctx, param)
    return value


#: The parameters of ``tracing_options``.
TRACING = ("probes", "deep", "interval", "pid", "cgroup", "cpus")


def refuse(ctx: click.Context, when: str, *names: str) -> None:
    """Raise UsageError for parameters that the user gave and that do nothing ``when`` ("with --verify")."""
    given = [name for name in names if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    options = [param.opts[0] for param in ctx.command.params if param.name in given]
    if options:
        raise UsageError(f"{', '.join(options)} would do nothing {when}.", hint="leave it out")


def pstore_option(command: _Command) -> _Command:
    """Add ``pstore``: folders of the kernel's saved log."""
    return click.option(
        "--pstore",
        multiple=True,
        type=click.Path(exists=True, file_okay=False),
        metavar="DIR",
        help="The kernel's saved log, again for each folder; default: where this machine keeps it.",
    )(command)


def tracing_options(command: _Command) -> _Command:
    """Add what to trace: probes, depth, interval, filters."""
    for option in (
        click.option("--cpus", metavar="LIST", callback=_cpu_list, help="Only these CPUs, for example 0-3,8."),
        click.option("--cgroup", metavar="PATH", help="Only tasks of this cgroup (its path below the cgroup mount)."),
        click.option("--pid", type=click.IntRange(min=1), metavar="PID", help="Only this process, all its threads."),
        click.option(
            "--interval", type=INTERVAL, default="1s", show_default=True, help="Length of one window, 10ms to 60s."
        ),
        click.option("--deep", is_flag=True, help="Also the deep probes: stacks, per-task; costs more."),
        click.option(
            "--probes",
            default="auto",
            show_default=True,
            metavar="A,B",
            help="Probes by name ('foreshock probes' lists them), or auto: every light one that can run here.",
        ),
    ):
        command = option(command)
    return command
