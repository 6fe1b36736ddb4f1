"""Replace the names in a recording or a black box by keyed hashes: of tasks, cgroups, programs, the host, addresses."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tracer import brackets
from tracer.alerts.alert import Alert
from tracer.alerts.record import occasion
from tracer.alerts.vocabulary import own_words
from tracer.analysis.idle import OURS
from tracer.blackbox.columns import OWN_PROBES, Column, are_functions, columns, devices, peoples
from tracer.blackbox.commandline import unnamed_kernel_command
from tracer.blackbox.places import ADDRESS, PLACES, is_plain_device, without_devices
from tracer.blackbox.sentences import without_names
from tracer.window import Window

__all__ = ["Redactor"]

_MOST_NAMES = 20_000
_DEEPEST = 32
_HOST_KEYS = frozenset({"host", "hostname", "nodename", "node"})
_KERNEL_COMMAND, _BOOT = "command_line", "boot_id"
#: The kernel tells it when it boots.
_BOOTED = re.compile(r"(.*\b(?:Kernel c|C)ommand line: )(.+)", re.DOTALL)
#: The kernel's own threads, foreshock, and all processes that are told together: they name nobody, and evidence needs
#: them.
_KERNEL = re.compile(
    r"kworker/(?:u?\d+:\d+H?|R)(?:[-+][\w:+-]{1,15})?"
    r"|(?:ksoftirqd|migration|swapper|cpuhp|idle_inject|rcuc|rcuop|rcuog|rcub)/[0-9a-z:+_-]{1,15}"
    r"|rcu_(?:sched|preempt|exp_gp_kthr|tasks_\w{1,8})|khungtaskd|kswapd\d+|kcompactd\d+|watchdogd|kthreadd|others"
    + "".join(rf"|{re.escape(name.decode())}" for name in OURS)
)
#: Where texts of ours, and what else looks like them, name a task: name[pid], task name:pid.
#: Adapters number their commands so: cmd[3].
_TASK = r"(?!cmd\[)(?<!\bc)(?<!\bcm)[^\s\[\](){}<>,;'\"]+(?=\[\d{1,10}\])|(?<=task )\S+(?=:\d)"
#: Where our sentences name a cgroup, which may have spaces.
_CGROUP = r"(?<=cgroup )/[^,;()]+"

#: What every host may be part of.
_EVERYWHERE = frozenset({"localhost", "localdomain", "local", "internal"})
_SHORTEST_PART = 4

#: Of a process's functions, words of ours around what people named: before it, and after it where in a file it is.
_FUNCTION = re.compile(
    rf"({re.escape(brackets.BEFORE_EXEC)}|{re.escape(brackets.UNRECORDED)})(.+)(\])|"
    rf"(py::|{re.escape(brackets.UNKNOWN_AT)})?(.+?)(\+0x[0-9a-f]+\]?)?",
    re.DOTALL,
)
_NOWHERE = re.compile(rf"{re.escape(brackets.UNKNOWN_AT)}0x[0-9a-f]+\]")


class Redactor:
    """Hashes with ``key``. ``learn`` what a box holds first: texts are searched for the names known by then.

    A task may be called like a word of our sentences (``panic``): in a text it is a name where a pid follows.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._names: set[str] = set()
        self._own: set[str] = set()
        self._known: re.Pattern[str] | None = None
        # The same few come in every interval.
        self._hash = lru_cache(_MOST_NAMES)(self._hashed)
        self._redact = lru_cache(_MOST_NAMES)(self._redacted)

    def name(self, name: str) -> str:
        """Return a name's hash, 12 characters; those of the kernel's own threads and the root cgroup as they are."""
        return self._hash(name)

    def task(self, task: str) -> str:
        """Return ``comm[pid]`` with its name hashed."""
        name, bracket, pid = task.rpartition("[")
        return f"{self.name(name)}{bracket}{pid}" if bracket else self.name(task)

    def function(self, symbol: str) -> str:
        """Return a function of a process, or what it is part of, hashed; what says that there is none, as it is."""
        parts = _FUNCTION.fullmatch(symbol)
        if parts is None or symbol in brackets.OWN or _NOWHERE.fullmatch(symbol):
            return symbol
        before, name, after = parts.groups()[:3] if parts[2] else parts.groups()[3:]
        return f"{before or ''}{self.name(name)}{after or ''}"

    def device(self, name: str) -> str:
        """Return a device's name hashed, if people have named it."""
        return name if is_plain_device(name) else self.name(name)

    def id(self, alert_id: str) -> str:
        """Return another id of 16 hexadecimal digits: an alert's is a hash that names go into, and could be guessed."""
        return hmac.new(self._key, b"alert\0" + alert_id.encode(), hashlib.sha256).hexdigest()[:16]

    def learn(self, names: Iterable[str]) -> None:
        """Remember names that have to go wherever they are part of a text."""
        for name in names:
            if name in self._names:
                continue
            if len(name) > 1 and len(self._names) < _MOST_NAMES and not _KERNEL.fullmatch(name):
                self._names.add(name)
                self._known = None

    def learn_own(self, names: Iterable[str]) -> None:
        """Remember names of the node itself, a host's and devices': they also go where they are part of a word."""
        for name in names:
            self.learn([name])
            parts = {name, *name.split(".")} - own_words() - _EVERYWHERE
            new = {part for part in parts if len(part) >= _SHORTEST_PART and not part.isdecimal()} - self._own
            if new and len(self._own) < _MOST_NAMES:
                self._own |= new
                self._known = None

    def learn_windows(self, windows: Iterable[Window]) -> None:
        """Remember the tasks, cgroups and programs of an interval."""
        for window in windows:
            if (theirs := peoples(window.rows)).any():
                self.learn(map(_text, window.rows["name"][theirs].tolist()))
            if (theirs := devices(window.rows)).any():
                self._learn_devices(window.rows["name"][theirs])
            if are_functions(window.rows.dtype):
                modules = window.rows["module"][window.rows["kind"] != b"k"]
                self.learn(set(map(_text, modules.tolist())) - brackets.OWN)
            for column in columns(window.rows):
                if column.device_like:
                    self._learn_devices(column.values)
                elif column.name_like:
                    self.learn(map(_text, set(column.values.reshape(-1).tolist())))

    def learn_header(self, header: Mapping[str, Any]) -> None:
        """Remember the host's name, what was filtered by, labels, and the alert that it was recorded for."""
        self.learn_own(str(value) for key, value in header.items() if key in _HOST_KEYS)
        fingerprint = header.get("fingerprint")
        if isinstance(fingerprint, Mapping):
            self.learn_own(str(value) for key, value in fingerprint.items() if key in _HOST_KEYS)
        filters = header.get("filters")
        if isinstance(filters, dict):
            self.learn(str(filters[key]) for key in ("cgroup",) if key in filters)
        labels = header.get("labels")
        if isinstance(labels, Mapping):
            self.learn(str(value) for value in labels.values() if not str(value).isdecimal())
        if alert := occasion(header):
            self.learn_alert(alert)

    def text(self, text: str) -> str:
        """Return a text without names in the kernel's sentences, those learnt, what is like a task, and addresses."""
        if self._known is None:
            alike = self._names & own_words()
            # Of several that begin at one place the longest; what may have spaces in it is told by who knows it.
            long = {name for name in self._names - alike if "/" in name or " " in name}
            self._known = re.compile(
                rf"(?<![\w./-])(?:{_any_of(long)})(?![\w/-])|{_CGROUP}|{PLACES}"
                rf"|(?<![\w./-])(?:(?:{_any_of(self._names - alike - long)})(?![\w/-])|(?:{_any_of(alike)})(?=[\[:]\d))"
                rf"|(?<![A-Za-z0-9])(?:{_any_of(self._own)})(?![A-Za-z0-9])|{_TASK}|{ADDRESS}"
            )
            self._redact.cache_clear()
        return self._redact(text)

    def tree(self, value: Any, key: str = "", depth: int = 0) -> Any:
        """Return a map or a list with all its texts redacted; its keys stay. What lies deeper than anybody's goes."""
        if isinstance(value, (Mapping, list, tuple)) and depth == _DEEPEST:
            return "…"
        if isinstance(value, Mapping):
            return {name: self.tree(item, str(name), depth + 1) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.tree(item, "", depth + 1) for item in value]
        if isinstance(value, str):
            if key == _KERNEL_COMMAND:
                return unnamed_kernel_command(value, self)
            if key == _BOOT:
                return value
            return self.name(value) if key in _HOST_KEYS else self.text(value)
        return value

    def window(self, window: Window) -> Window:
        """Return a window with the columns of names hashed, and other texts redacted."""
        if window.probe in OWN_PROBES:
            return window
        rows = window.rows.copy()
        if are_functions(rows.dtype):
            # The kernel's and its modules' stay.
            theirs = rows["kind"] != b"k"
            for name in ("module", "symbol"):
                rows[name][theirs] = _changed(rows[name][theirs], self.function)
            if "build_id" in (rows.dtype.names or ()):
                rows["build_id"] = b""  # which program it is, for who has one like it
            return replace(window, rows=rows)
        for column in columns(rows):
            if not column.own:
                # The hash is as long as a column of names is wide at least; what is cut off elsewhere was text.
                column.values[...] = _changed(column.values, self._hiding(column))
        if (named := peoples(rows)).any():
            rows["name"][named] = _changed(window.rows["name"][named], self.name)
        if (named := devices(rows)).any():
            rows["name"][named] = _changed(window.rows["name"][named], self.device)
        return replace(window, rows=rows)

    def learn_alert(self, alert: Alert) -> None:
        """Remember the names that an alert carries in fields of their own."""
        subject, culprit = alert.condition.subject, alert.condition.culprit
        self.learn_own([alert.node])
        if subject.kind == "device" and not is_plain_device(subject.name):
            self.learn_own([subject.name])
        if subject.kind in ("task", "cgroup"):
            self.learn([subject.name.rpartition("[")[0] or subject.name])
        if culprit and culprit.task:
            self.learn([culprit.task.rpartition("[")[0] or culprit.task])

    def _learn_devices(self, values: np.ndarray) -> None:
        names = map(_text, set(values.reshape(-1).tolist()))
        self.learn_own(name for name in names if not is_plain_device(name))

    def _hiding(self, column: Column) -> Callable[[str], str]:
        return self.device if column.device_like else self.name if column.name_like else self.text

    def _once(self, text: str) -> str:
        # What is a hash already stays: patterns may find it again.
        return text if re.fullmatch(r"h-[0-9a-f]{10}", text) else self.name(text)

    def _hashed(self, name: str) -> str:
        if name in ("", "/") or _KERNEL.fullmatch(name):
            return name
        digest = hmac.new(self._key, name.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return f"h-{digest.hexdigest()[:10]}"

    def _redacted(self, text: str) -> str:
        if line := _BOOTED.search(text):
            text = line[1] + unnamed_kernel_command(line[2], self)
        # Before the names known: one of them may be like a part of a sentence.
        text = without_devices(without_names(text, self._once), self._once)
        return self._known.sub(lambda match: self._once(match[0]), text) if self._known else text


def _changed(values: np.ndarray, change: Callable[[str], str]) -> np.ndarray:
    changed = [change(_text(value)).encode("utf-8", "surrogateescape") for value in values.reshape(-1).tolist()]
    return np.array(changed, values.dtype).reshape(values.shape)


def _any_of(names: Iterable[str]) -> str:
    """Return an expression for any of ``names``, the longest first: one may begin with another."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or r"(?!)"


def _text(value: bytes) -> str:
    return bytes(value).decode("utf-8", "surrogateescape")
