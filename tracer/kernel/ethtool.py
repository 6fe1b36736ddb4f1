"""What ethtool knows about a network device, through its oldest ioctls: no netlink family to look up.

Each call takes the kernel's RTNL lock and may ask the device's firmware: not for every interval.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from array import array

__all__ = ["Ethtool"]

SIOCETHTOOL = 0x8946
ETHTOOL_GDRVINFO, ETHTOOL_GCOALESCE, ETHTOOL_GRINGPARAM = 0x03, 0x0E, 0x10
ETHTOOL_GCHANNELS, ETHTOOL_GLINKSETTINGS = 0x3C, 0x4C
_IFREQ = struct.Struct("16sP16x")
_SPEED_UNKNOWN = 0xFFFFFFFF


class Ethtool:
    """Answers about the devices of the namespace it's opened in; None where a driver has no answer."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def driver(self, device: bytes) -> dict[str, bytes] | None:
        """Return driver, version, firmware and bus address: ``struct ethtool_drvinfo``."""
        answer = self._ask(device, ETHTOOL_GDRVINFO, 196)
        if answer is None:
            return None
        names = ("driver", "version", "firmware", "bus")
        fields = struct.unpack_from("=32s32s32s32s", answer, 4)
        return {name: field.partition(b"\0")[0] for name, field in zip(names, fields, strict=True)}

    def speed_mbps(self, device: bytes) -> int:
        """Return the link's speed in Mbit/s, 0 when it isn't known: ``struct ethtool_link_settings``."""
        asked = self._ask(device, ETHTOOL_GLINKSETTINGS, 48)
        if asked is None:
            return 0
        # The first answer is a handshake: minus the number of words in each of the three link mode masks.
        words = -struct.unpack_from("=b", asked, 15)[0]
        answer = self._ask(device, ETHTOOL_GLINKSETTINGS, 48 + 12 * words, words) if words > 0 else None
        speed = int(struct.unpack_from("=I", answer, 4)[0]) if answer else _SPEED_UNKNOWN
        return 0 if speed == _SPEED_UNKNOWN else speed

    def rings(self, device: bytes) -> dict[str, int] | None:
        """Return the receive and transmit ring sizes and their limits: ``struct ethtool_ringparam``."""
        answer = self._ask(device, ETHTOOL_GRINGPARAM, 36)
        if answer is None:
            return None
        rx_max, _, _, tx_max, rx, _, _, tx = struct.unpack_from("=8I", answer, 4)
        return {"rx": rx, "rx_max": rx_max, "tx": tx, "tx_max": tx_max}

    def channels(self, device: bytes) -> dict[str, int] | None:
        """Return the numbers of queues in use and their limits: ``struct ethtool_channels``."""
        answer = self._ask(device, ETHTOOL_GCHANNELS, 36)
        if answer is None:
            return None
        names = ("rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined")
        return dict(zip(names, struct.unpack_from("=8I", answer, 4), strict=True))

    def coalesce(self, device: bytes) -> dict[str, int] | None:
        """Return how long the card waits before it interrupts: ``struct ethtool_coalesce``."""
        answer = self._ask(device, ETHTOOL_GCOALESCE, 92)
        if answer is None:
            return None
        rx_usecs, rx_frames, _, _, tx_usecs, tx_frames, _, _, _, rx_adaptive, tx_adaptive = struct.unpack_from(
            "=11I", answer, 4
        )
        return {
            "rx_usecs": rx_usecs,
            "rx_frames": rx_frames,
            "rx_adaptive": rx_adaptive,
            "tx_usecs": tx_usecs,
            "tx_frames": tx_frames,
            "tx_adaptive": tx_adaptive,
        }

    def _ask(self, device: bytes, command: int, size: int, mask_words: int = 0) -> bytes | None:
        question = array("B", bytes(size))
        struct.pack_into("=I", question, 0, command)
        if mask_words:
            struct.pack_into("=b", question, 15, mask_words)
        request = bytearray(_IFREQ.pack(device[:15], question.buffer_info()[0]))
        try:
            fcntl.ioctl(self._socket, SIOCETHTOOL, request)
        except OSError:
            return None
        return question.tobytes()
