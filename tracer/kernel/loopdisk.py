"""A loop device of our own that fails: the kernel gives it back with its last user.

Standard library only: workloads run without site-packages.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import tempfile

__all__ = ["fail_to_read", "lacking", "make_broken"]

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_SIZE = 1 << 20


def lacking() -> str:
    """Return what this machine lacks for one, in a few words; "" if nothing."""
    if os.geteuid() != 0:
        return "not root"
    if shutil.which("losetup", path=_PATH) is None:
        return "losetup is not installed"
    return "" if os.path.exists("/dev/loop-control") else "no loop devices"


def make_broken() -> tuple[str, int]:
    """Return a device whose file is empty, and a descriptor that keeps it. Raises OSError or CalledProcessError."""
    with tempfile.NamedTemporaryFile(prefix="foreshock-broken-") as disk:
        disk.truncate(_SIZE)
        device = _losetup("--find", "--show", disk.name).strip()
        try:
            descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        finally:
            # While it is open: the kernel frees it when that ends.
            _losetup("--detach", device)
        disk.truncate(0)
    return os.path.basename(device), descriptor


def fail_to_read(descriptor: int) -> None:
    """Have the kernel log an I/O error."""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    try:
        os.preadv(descriptor, [page], _SIZE // 2)
    except OSError:
        return
    finally:
        page.close()


def _losetup(*arguments: str) -> str:
    done = subprocess.run(
        ["losetup", *arguments], check=True, env={"PATH": _PATH}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return done.stdout.decode()
