"""The state and the counters of every network device at one moment, and the difference of two moments."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer.kernel.ethtool import Ethtool
from tracer.kernel.rtnetlink import STATS, Link, LinkSocket

__all__ = ["COUNTERS", "LINK", "LinkTable", "Moment", "difference"]

# Column of ``netdev.link`` by member of struct rtnl_link_stats64.
COUNTERS = {
    "rx_bytes": "rx_bytes",
    "rx_packets": "rx_packets",
    "rx_dropped": "rx_dropped",
    "rx_errors": "rx_errors",
    "rx_missed": "rx_missed_errors",
    "rx_fifo": "rx_fifo_errors",
    "rx_over": "rx_over_errors",
    "rx_crc": "rx_crc_errors",
    "rx_frame": "rx_frame_errors",
    "rx_length": "rx_length_errors",
    "rx_nohandler": "rx_nohandler",
    "rx_multicast": "multicast",
    "tx_bytes": "tx_bytes",
    "tx_packets": "tx_packets",
    "tx_dropped": "tx_dropped",
    "tx_errors": "tx_errors",
    "tx_fifo": "tx_fifo_errors",
    "tx_aborted": "tx_aborted_errors",
    "tx_carrier": "tx_carrier_errors",
    "collisions": "collisions",
}
_GAUGES = [
    ("ifindex", "<u4"),
    ("device", "S16"),
    ("driver", "S32"),
    ("state", "S16"),
    ("carrier", "u1"),
    ("speed_mbps", "<u4"),
    ("rx_queues", "<u4"),
    ("tx_queues", "<u4"),
]
LINK = np.dtype([*_GAUGES, ("carrier_changes", "<u8"), *((column, "<u8") for column in COUNTERS)])
_NAMES = [name for name, _ in _GAUGES]
_MEMBERS = list(STATS.names or ())
# Where in the totals each counter of LINK is, in LINK's order; the changes of the carrier come last in the totals.
_PLACES = [-1, *(_MEMBERS.index(member) for member in COUNTERS.values())]
_FIRST_COUNTER = LINK.itemsize - 8 * len(_PLACES)


@dataclass(frozen=True)
class Moment:
    """Every device at one moment: ``ids`` are never used twice, ``rows`` are ``LINK`` with the counters' totals."""

    ids: npt.NDArray[np.uint64]
    rows: np.ndarray
    totals: npt.NDArray[np.uint64]


class LinkTable:
    """The devices of the network namespace it's opened in. Raises OSError when rtnetlink can't be had.

    Names, states and queues follow the kernel's notifications, so that a read asks for nothing but counters.
    """

    def __init__(self) -> None:
        self._socket = LinkSocket()
        self._ethtool = Ethtool()
        self._ids = itertools.count(1)
        self._devices: dict[int, tuple[int, Link, bytes]] = {}
        self._complete = False

    def close(self) -> None:
        """Close the sockets."""
        self._socket.close()
        self._ethtool.close()

    def read(self) -> Moment:
        """Return every device as it is now."""
        self._follow()
        ifindexes, stats = self._socket.counters()
        found = [self._devices.get(ifindex) for ifindex in ifindexes.tolist()]
        # One that came between the two questions is known at the next read.
        here = [position for position, device in enumerate(found) if device is not None]
        known = [device for device in found if device is not None]
        rows = np.frombuffer(b"".join([row for _, _, row in known]), LINK)
        flaps = np.array([link.carrier_changes for _, link, _ in known], dtype=np.uint64)
        totals = stats.view("<u8").reshape(len(stats), len(_MEMBERS))[here]
        return Moment(np.array([id for id, _, _ in known], np.uint64), rows, np.column_stack([totals, flaps]))

    def _follow(self) -> None:
        changes = self._socket.changes()
        if changes is None or not self._complete:
            links = self._socket.links()
            gone = list(self._devices.keys() - {link.ifindex for link in links})
            self._complete = True
        else:
            links, gone = changes
        for ifindex in gone:
            self._devices.pop(ifindex, None)
        for link in links:
            id, before, _ = self._devices.get(link.ifindex, (0, None, b""))
            if before == link:
                continue
            if before is None or before.name != link.name:
                id = next(self._ids)
            self._devices[link.ifindex] = id, link, self._gauges(link)

    def _gauges(self, link: Link) -> bytes:
        row = np.zeros(1, LINK)
        driver = (self._ethtool.driver(link.name) or {}).get("driver") or link.kind
        # A link that is down has no speed, and some drivers answer with the last one.
        speed = self._ethtool.speed_mbps(link.name) if link.carrier and link.state != b"off" else 0
        values = (link.ifindex, link.name, driver, link.state, link.carrier, speed, link.rx_queues, link.tx_queues)
        for name, value in zip(_NAMES, values, strict=True):
            row[name] = value
        return row.tobytes()


def difference(before: Moment, after: Moment) -> tuple[np.ndarray, dict[str, int]]:
    """Return ``LINK`` rows of what was counted between two moments, and the devices of which that isn't known.

    Those have no row: ``reset`` counters that went back, ``appeared`` there was no earlier moment, ``gone`` no later.
    """
    places, same = _places(before.ids, after.ids)
    counted = after.totals[same] - before.totals[places]
    back = (counted.view(np.int64) < 0).any(axis=1)
    rows = after.rows[same]
    if back.any():
        counted, rows = counted[~back], rows[~back]
    # All counters at once: they are the end of a row.
    octets = rows.view(np.uint8).reshape(len(rows), LINK.itemsize)
    octets[:, _FIRST_COUNTER:] = counted[:, _PLACES].astype("<u8", order="C").view(np.uint8)
    shared = len(places)
    return rows, {
        "reset": shared - len(rows),
        "appeared": len(after.ids) - shared,
        "gone": len(before.ids) - shared,
    }


def _places(before: npt.NDArray[np.uint64], after: npt.NDArray[np.uint64]) -> tuple[np.ndarray, np.ndarray]:
    """Return where in ``before`` the ids are that both have, and where in ``after``."""
    if before.tobytes() == after.tobytes():
        # As always, but for when a device comes or goes.
        same = np.arange(len(after))
        return same, same
    _, places, same = np.intersect1d(before, after, assume_unique=True, return_indices=True)
    return places[np.argsort(same)], np.sort(same)
