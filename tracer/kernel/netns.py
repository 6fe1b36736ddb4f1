"""Network namespaces without a name: they and the devices in them are gone with their last process, however it ends.

Standard library only: workloads run without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

__all__ = ["NEAR", "FAR", "can_pair", "configure", "connect", "enter_new"]

_CLONE_NEWNET = 0x40000000

#: Addresses of the two ends, of a net that is never routed (RFC 5737), each with its device.
NEAR = ("192.0.2.1", "near0")
FAR = ("192.0.2.2", "far0")


def can_pair() -> bool:
    """Return whether a pair of namespaces can be tried: iproute2 is there, and so are the privileges by all signs."""
    return _ip_path() is not None and os.geteuid() == 0


def enter_new() -> None:
    """Move this thread into a new, empty network namespace. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare(CLONE_NEWNET): {os.strerror(error)}")


def connect(peer: int) -> None:
    """Make a veth pair from this namespace to that of the process ``peer``. Raises OSError."""
    _ip("link", "add", NEAR[1], "type", "veth", "peer", "name", FAR[1], "netns", str(peer))


def configure(end: tuple[str, str]) -> None:
    """Give this namespace's end of the pair its address and set it up. Raises OSError."""
    address, device = end
    _ip("address", "add", f"{address}/24", "dev", device)
    _ip("link", "set", device, "up")


def _ip(*arguments: str) -> None:
    path = _ip_path()
    if path is None:
        raise FileNotFoundError("iproute2 is not installed")
    try:
        subprocess.run([path, *arguments], check=True, capture_output=True, timeout=5)
    except subprocess.CalledProcessError as error:
        raise OSError(f"ip {' '.join(arguments)}: {error.stderr.decode(errors='replace').strip()}") from None
    except subprocess.TimeoutExpired:
        raise OSError(f"ip {' '.join(arguments)}: no answer") from None


def _ip_path() -> str | None:
    # Not everybody's PATH has the sbin folders.
    return shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin")
