"""Network devices and RDMA ports, polled once per interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.kernel.links import LINK, LinkTable, Moment, difference
from tracer.kernel.patience import Patience
from tracer.kernel.rdma import PORT, SLOW_EVERY, RdmaPorts

__all__ = ["Source", "refusal"]

Read = tuple[np.ndarray, dict[str, int]]

MAX_DEVICES = 512
# Longer than any healthy answer, and short enough that the other tables of the interval aren't late.
PATIENCE_SECONDS = 0.2


class Source:
    """The tables ``netdev.link`` and ``netdev.rdma`` of the network namespace it's opened in.

    Settings, all optional: ``devices`` rows at most, ``rdma_root`` and ``rdma_exclude`` (device names, separated by
    commas), ``rdma_slow_every`` how many reads apart error counters are read. Raises OSError: see ``refusal``.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._links = LinkTable()
        self._ports = RdmaPorts(
            settings.get("rdma_root", "/sys/class/infiniband"),
            frozenset(filter(None, str(settings.get("rdma_exclude", "")).split(","))),
            settings.get("rdma_slow_every", SLOW_EVERY),
        )
        self._max_devices = int(settings.get("devices", MAX_DEVICES))
        self._ask_links = Patience(self._links.read, PATIENCE_SECONDS)
        self._ask_ports = Patience(self._ports.read, PATIENCE_SECONDS)
        self._before: Moment | None = None
        self._ports_late = True

    def read(self, now_ns: int) -> dict[str, Read]:
        """Return ``{table: (rows, losses)}`` of what was counted since the last read; the first time nothing.

        The loss ``unread`` says that the kernel didn't answer in time or refused. The next answer is a new
        beginning, because what it counted belongs to more than one interval.
        """
        del now_ns  # the collector's own clock; nothing here depends on it
        return {"link": self._read_links(), "rdma": self._read_ports()}

    def complete(self) -> None:
        """Let the next read compare every counter, those included that are read every few intervals only."""
        self._ports.complete()

    def close(self) -> None:
        """End the threads and close the sockets."""
        self._ask_links.close()
        self._ask_ports.close()
        self._links.close()

    def _read_links(self) -> Read:
        losses = dict.fromkeys(("reset", "appeared", "gone", "left_out", "unread"), 0)
        before = self._before
        try:
            self._before = self._ask_links.ask()
        except OSError:
            self._before = None
        if self._before is None:
            losses["unread"] = 1
        if self._before is None or before is None:
            return np.zeros(0, LINK), losses
        rows, unknown = difference(before, self._before)
        losses |= unknown
        losses["left_out"] = max(len(rows) - self._max_devices, 0)
        return _busiest(rows, self._max_devices), losses

    def _read_ports(self) -> Read:
        late = self._ports_late
        try:
            # Most nodes have no ports, and seeing that needs no patience: a thread's wake-up is saved.
            answer = self._ports.read() if not late and self._ports.absent() else self._ask_ports.ask()
        except OSError:
            answer = None
        self._ports_late = answer is None
        if answer is None:
            return np.zeros(0, PORT), {"unread": 1}
        rows, losses = answer
        return (rows[:0] if late else rows), losses | {"unread": 0}


def refusal() -> str:
    """Return why a source can't start in this process; "" if it can."""
    try:
        LinkTable().close()
    except OSError as error:
        allow = "allow AF_NETLINK: systemd RestrictAddressFamilies=, or the container's seccomp profile"
        return f"no rtnetlink socket: {error.strerror} ({allow})"
    return ""


def _busiest(rows: np.ndarray, limit: int) -> np.ndarray:
    """Return at most ``limit`` rows, those with the most packets, in their old order."""
    if len(rows) <= limit:
        return rows
    quietest_first = np.argsort(rows["rx_packets"] + rows["tx_packets"], kind="stable")
    return rows[np.sort(quietest_first[len(rows) - limit :])]
