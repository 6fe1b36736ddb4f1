"""Network devices through rtnetlink: pyroute2's messages on plain sockets.

Two questions are asked: what is there (RTM_GETLINK once, then the kernel's own notifications) and what did it
count (RTM_GETSTATS, one small message per device).
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Link", "LinkSocket", "STATS"]

NLM_F_REQUEST, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x10, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_GETSTATS = 16, 17, 18, 94
RTMGRP_LINK = 1
RTEXT_FILTER_SKIP_STATS = 1 << 3
IFLA_STATS_LINK_64 = 1
IFF_UP = 1
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")
_STATS_FIXED = _HEADER.size + 12  # struct if_stats_msg


def _messages() -> tuple[Any, Any]:
    """Return pyroute2's ``ifinfmsg`` and ``ifstatsmsg`` classes without running ``pyroute2/__init__.py``.

    That file imports every subsystem and asyncio: 20 MB resident, where the two message modules take 2.
    A bare package object with the right search path stands in for it, and is taken away again afterwards, so
    that an ordinary ``import pyroute2`` elsewhere still gets the whole.
    """
    names = ("pyroute2.netlink.rtnl.ifinfmsg", "pyroute2.netlink.rtnl.ifstatsmsg")
    spec = importlib.util.find_spec("pyroute2") if "pyroute2" not in sys.modules else None
    if spec is None:
        info, stats = (importlib.import_module(name) for name in names)
        return info.ifinfmsg, stats.ifstatsmsg
    sys.modules["pyroute2"] = importlib.util.module_from_spec(spec)
    try:
        info, stats = (importlib.import_module(name) for name in names)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pyroute2"]:
            del sys.modules[name]
    return info.ifinfmsg, stats.ifstatsmsg


_ifinfmsg, _ifstatsmsg = _messages()

# struct rtnl_link_stats64 as pyroute2 declares it. rx_nohandler follows since 6e7333d315a7 ("net: add rx_nohandler
# stat counter") (in v4.6), before RTM_GETSTATS came in v4.7, so every kernel that answers sends it.
STATS = np.dtype([(name, "<u8") for name, _ in _ifstatsmsg.ifstats64.fields] + [("rx_nohandler", "<u8")])


@dataclass(frozen=True)
class Link:
    """One network device. ``state`` is ``off`` when set down by the administrator, else the operational state."""

    ifindex: int
    name: bytes
    kind: bytes
    state: bytes
    carrier: int
    carrier_changes: int
    rx_queues: int
    tx_queues: int


class LinkSocket:
    """The network devices of the namespace of the thread that opens it. Raises OSError when it can't."""

    def __init__(self) -> None:
        self._requests = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._requests.bind((0, 0))
        self._news.bind((0, RTMGRP_LINK))
        self._news.setblocking(False)
        links, stats = _ifinfmsg(), _ifstatsmsg()
        links["attrs"] = [("IFLA_EXT_MASK", RTEXT_FILTER_SKIP_STATS)]
        stats["filter_mask"] = 1 << (IFLA_STATS_LINK_64 - 1)
        # Encoded once: it takes longer than the kernel's answer.
        self._ask_links, self._ask_stats = _dump_request(links, RTM_GETLINK), _dump_request(stats, RTM_GETSTATS)
        self._sequence = 0
        self._buffer = bytearray(1 << 16)

    def close(self) -> None:
        """Close both sockets."""
        self._requests.close()
        self._news.close()

    def links(self) -> list[Link]:
        """Return every device there is."""
        return [_link(message) for message in self._dump(self._ask_links) if _kind(message) == RTM_NEWLINK]

    def changes(self) -> tuple[list[Link], list[int]] | None:
        """Return the devices that are new or changed and the ifindexes that went, since the last call.

        None when the kernel had to drop notifications: ask for ``links()`` again.
        """
        changed: dict[int, bytes] = {}
        gone: list[int] = []
        while True:
            try:
                size = self._news.recv_into(self._buffer)
            except BlockingIOError:
                return [_link(message) for message in changed.values()], gone
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    return None
                raise
            for message in _split(memoryview(self._buffer)[:size]):
                ifindex = struct.unpack_from("=i", message, _HEADER.size + 4)[0]
                if _kind(message) == RTM_NEWLINK:
                    changed[ifindex] = bytes(message)
                elif _kind(message) == RTM_DELLINK and _HEADER.size < len(message):
                    changed.pop(ifindex, None)
                    gone.append(ifindex)

    def counters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ifindexes, shape ``(n,)``, and their counters, ``(n,)`` of ``STATS``."""
        indexes, blocks = [], []
        for message in self._dump(self._ask_stats):
            block = _stats_block(message)
            if block is not None:
                indexes.append(struct.unpack_from("=I", message, _HEADER.size + 4)[0])
                blocks.append(block)
        return np.array(indexes, dtype=np.uint32), np.frombuffer(b"".join(blocks), dtype=STATS)

    def _dump(self, request: bytearray) -> list[bytes]:
        # A dump that ran into a change says so; the third answer is taken as it is.
        for _ in range(3):
            messages, interrupted = self._dump_once(request)
            if not interrupted:
                break
        return messages

    def _dump_once(self, request: bytearray) -> tuple[list[bytes], bool]:
        self._sequence += 1
        struct.pack_into("=I", request, 8, self._sequence)
        self._requests.send(request)
        messages: list[bytes] = []
        interrupted = False
        while True:
            size = self._requests.recv_into(self._buffer)
            data = bytes(memoryview(self._buffer)[:size])
            for message in _split(data):
                _, answer, flags, sequence, _ = _HEADER.unpack_from(message)
                if sequence != self._sequence:
                    continue  # the rest of an earlier dump that was given up
                interrupted |= bool(flags & NLM_F_DUMP_INTR)
                if answer == NLMSG_DONE:
                    return messages, interrupted
                if answer == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", message, _HEADER.size)[0], "rtnetlink refused the request")
                messages.append(message)


def _dump_request(message: Any, kind: int) -> bytearray:
    message["header"]["type"], message["header"]["flags"] = kind, NLM_F_REQUEST | NLM_F_DUMP
    message.encode()
    return bytearray(message.data)


def _split(data: Any) -> Iterator[Any]:
    position = 0
    while position + _HEADER.size <= len(data):
        length = _HEADER.unpack_from(data, position)[0]
        if length < _HEADER.size:
            return
        yield data[position : position + length]
        position += (length + 3) & ~3


def _kind(message: Any) -> int:
    return int(_HEADER.unpack_from(message)[1])


def _stats_block(message: bytes) -> bytes | None:
    """Return the bytes of ``struct rtnl_link_stats64``, whose later members we don't know are cut off."""
    position = _STATS_FIXED
    while position + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, position)
        if kind == IFLA_STATS_LINK_64 and length >= _ATTRIBUTE.size + STATS.itemsize:
            return message[position + _ATTRIBUTE.size : position + _ATTRIBUTE.size + STATS.itemsize]
        position += max((length + 3) & ~3, _ATTRIBUTE.size)
    return None


def _link(message: bytes) -> Link:
    info = _ifinfmsg(message)
    info.decode()
    details = info.get_attr("IFLA_LINKINFO")
    kind = details.get_attr("IFLA_INFO_KIND") if details else None
    state = "off" if not info["flags"] & IFF_UP else str(info.get_attr("IFLA_OPERSTATE") or "unknown").lower()
    return Link(
        ifindex=info["index"],
        name=_raw(info.get_attr("IFLA_IFNAME")),
        kind=_raw(kind),
        state=state.encode(),
        carrier=info.get_attr("IFLA_CARRIER") or 0,
        carrier_changes=info.get_attr("IFLA_CARRIER_CHANGES") or 0,
        rx_queues=info.get_attr("IFLA_NUM_RX_QUEUES") or 0,
        tx_queues=info.get_attr("IFLA_NUM_TX_QUEUES") or 0,
    )


def _raw(name: str | bytes | None) -> bytes:
    # pyroute2 hands out bytes when a name isn't UTF-8, which the kernel allows.
    return name if isinstance(name, bytes) else (name or "").encode()
