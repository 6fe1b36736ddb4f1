"""RDMA ports from /sys/class/infiniband: their traffic bypasses the network stack, so only the ports count it."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, field

import numpy as np

from tracer.kernel.rdma_counters import COLUMNS, SLOW, Source

__all__ = ["PORT", "PORT_FAST", "RdmaPorts"]

SLOW_EVERY = 10
MAX_PORTS = 256
_GAUGES = [
    ("device", "S64"),
    ("port", "<u4"),
    ("netdev", "S16"),
    ("link_layer", "S16"),
    ("state", "S16"),
    ("phys_state", "S24"),
    ("rate_mbps", "<u4"),
]
PORT = np.dtype([*_GAUGES, *((column, "<u8") for column in COLUMNS)])
#: What is known in intervals in which the slow counters are not compared.
PORT_FAST = np.dtype([*_GAUGES, *((column, "<u8") for column in COLUMNS if column not in SLOW)])
_RATE = re.compile(rb"([\d.]+) Gb/sec")
_EMPTY = -1


@dataclass
class _Port:
    """A port as last read. ``totals`` are raw values, before ``Source.scale``."""

    path: str
    inode: int
    row: np.ndarray
    sources: dict[str, Source] | None = None
    totals: dict[str, int] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)


class RdmaPorts:
    """Every port below ``root``. ``exclude`` names devices that are never touched.

    What can't be read is remembered and not read again until the port is made anew: on a port that another system
    manages each attempt is a line in the kernel log.
    """

    def __init__(
        self,
        root: str = "/sys/class/infiniband",
        exclude: frozenset[str] = frozenset(),
        slow_every: int = SLOW_EVERY,
    ) -> None:
        self._root = root
        self._exclude = exclude
        self._slow_every = slow_every
        self._reads = 0
        self._ports: dict[tuple[str, str], _Port] = {}
        self._first = True
        self._complete = False

    def complete(self) -> None:
        """Let the next read compare the slow counters, too."""
        self._complete = True

    def read(self) -> tuple[np.ndarray, dict[str, int]]:
        """Return ``PORT`` rows of the differences since the last read, and the losses.

        Where the slow counters were not compared the rows are ``PORT_FAST``: their columns are absent, not 0.
        Losses: ports without a row because their counters went back (``reset``) or they are new (``appeared``) or
        ``gone`` or beyond the limit (``left_out``); counters stuck at their maximum (``saturated``); counters or
        folders of counters given up (``unreadable``).
        """
        slow = self._complete or self._reads % self._slow_every == 0
        self._complete = False
        self._reads += 1
        losses = dict.fromkeys(("reset", "appeared", "gone", "saturated", "unreadable", "left_out"), 0)
        here = self._present()
        losses["left_out"] = max(len(here) - MAX_PORTS, 0)
        for key in self._ports.keys() - here.keys():
            del self._ports[key]
            losses["gone"] += 1
        rows = []
        for key, inode in list(here.items())[:MAX_PORTS]:
            port = self._ports.get(key)
            new = port is None or port.inode != inode
            if port is None or new:
                port = self._ports[key] = self._new_port(*key, inode)
            row = self._read_port(port, slow or new, losses)
            losses["unreadable"] += len(port.unreadable)
            if new:
                losses["appeared"] += not self._first
            elif row is not None:
                rows.append(row)
        self._first = False
        # Joined as bytes: numpy's concatenate compares the types field by field, every time.
        found = np.frombuffer(b"".join([row.tobytes() for row in rows]), PORT)
        return found if slow else _fast(found), losses

    def absent(self) -> bool:
        """Tell whether there is no device, and was none: a read then asks no device for anything."""
        return not self._ports and not self._devices()

    def _devices(self) -> list[str]:
        # Looked for first: most nodes have none, and that is no error that has to be made.
        return _names(self._root) if os.access(self._root, os.F_OK) else []

    def _present(self) -> dict[tuple[str, str], int]:
        """Return the inode of every port's folder: a port that was made anew has another one."""
        found = {}
        for device in self._devices():
            if device in self._exclude:
                continue
            for port in _names(f"{self._root}/{device}/ports"):
                try:
                    found[device, port] = os.stat(f"{self._root}/{device}/ports/{port}").st_ino
                except OSError:
                    continue  # removed since it was listed
        return found

    def _new_port(self, device: str, number: str, inode: int) -> _Port:
        path = f"{self._root}/{device}/ports/{number}"
        row = np.zeros(1, PORT)
        netdevs = _names(f"{self._root}/{device}/device/net")
        row["device"] = os.fsencode(device)
        row["port"] = int(number) if number.isdecimal() else 0
        row["netdev"] = os.fsencode(netdevs[0]) if len(netdevs) == 1 else b""
        port = _Port(path, inode, row)
        row["link_layer"] = self._text(port, "link_layer").lower()
        return port

    def _read_port(self, port: _Port, slow: bool, losses: dict[str, int]) -> np.ndarray | None:
        state = self._text(port, "state").rpartition(b": ")[2].lower()
        if state != port.row["state"][0]:
            port.row["state"] = state
            port.row["phys_state"] = self._text(port, "phys_state").rpartition(b": ")[2].lower()
            rate = _RATE.match(self._text(port, "rate"))
            port.row["rate_mbps"] = round(float(rate[1]) * 1000) if rate else 0
        row: np.ndarray = port.row.copy()
        # Nothing moves on a port without a link, and asking one that is managed elsewhere is what fills the log.
        if port.row["phys_state"][0] != b"linkup":
            return row
        if port.sources is None:
            port.sources = self._choose(port)
        back = False
        for column, source in port.sources.items():
            value = self._value(port, source) if slow or not source.slow else port.totals.get(column, _EMPTY)
            if value == _EMPTY:
                continue
            if source.bits and value == (1 << source.bits) - 1:
                losses["saturated"] += 1
            counted = value - port.totals.get(column, value)
            port.totals[column] = value
            back |= counted < 0
            if counted > 0:
                row[column] = counted * source.scale
        losses["reset"] += back
        return None if back else row

    def _choose(self, port: _Port) -> dict[str, Source]:
        folders = ("counters", "hw_counters")
        there = {f"{folder}/{name}" for folder in folders for name in _names(f"{port.path}/{folder}")}
        chosen = {}
        for column, sources in COLUMNS.items():
            usable = [source for source in sources if there.issuperset(source.files)]
            # A counter that the port has but doesn't fill in ("N/A (no PMA)") leaves the column to the next source.
            source = next((source for source in usable if self._value(port, source) != _EMPTY), None)
            if source is not None:
                chosen[column] = source
        return chosen

    def _value(self, port: _Port, source: Source) -> int:
        total = 0
        for file in source.files:
            text = self._text(port, file)
            if not text.isdigit():
                if text:
                    port.unreadable.add(file)
                return _EMPTY
            total += int(text)
        return total

    def _text(self, port: _Port, file: str) -> bytes:
        """Return a file's text without its newline, nothing when it can't be read; never tries such a file twice."""
        folder = file.rpartition("/")[0]
        if file in port.unreadable or (folder and folder in port.unreadable):
            return b""
        try:
            fd = os.open(f"{port.path}/{file}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.read(fd, 128).strip()
            finally:
                os.close(fd)
        except OSError as error:
            # One refused counter means that the whole folder is: the rest of it would only be more log lines.
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                port.unreadable.add(folder or file)
            return b""


def _fast(rows: np.ndarray) -> np.ndarray:
    fast = np.zeros(len(rows), PORT_FAST)
    for name in PORT_FAST.names or ():
        fast[name] = rows[name]
    return fast


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
