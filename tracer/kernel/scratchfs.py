"""A small file system of our own on a loop device, to be frozen or to fail, in a mount namespace of its own.

Standard library only: workloads run without site-packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import subprocess

__all__ = ["fail", "freeze", "lacking", "make", "remove", "thaw"]

_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_MNT_DETACH = 2
#: include/uapi/linux/fs.h: _IOWR('X', 119, int) and 120.
_FIFREEZE, _FITHAW = 0xC0045877, 0xC0045878
_SIZE = 16 << 20
_COMMANDS = ("mkfs.ext4", "mount")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_libc = ctypes.CDLL(None, use_errno=True)


def lacking() -> str:
    """Return what this machine lacks for one, in a few words; "" if nothing."""
    if os.geteuid() != 0:
        return "not root"
    missing = [name for name in _COMMANDS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return "" if os.path.exists("/dev/loop-control") else "no loop devices"


def make(folder: str) -> int:
    """Mount a new file system on ``folder``/fs, seen by this process and its children only; return its descriptor.

    The image lies in memory. Raises OSError or CalledProcessError.
    """
    _must(_libc.unshare(_CLONE_NEWNS))
    _must(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _must(_libc.mount(b"foreshock", folder.encode(), b"tmpfs", 0, b"size=20m,mode=0700"))
    image, point = f"{folder}/image", f"{folder}/fs"
    with open(image, "wb") as file:
        file.truncate(_SIZE)
    os.mkdir(point)
    _run("mkfs.ext4", "-q", image)
    # The loop device is freed with the mount: that is what -o loop asks for. Nothing that goes wrong in there may
    # ever be a panic, whatever mke2fs.conf says.
    _run("mount", "-o", "loop,errors=continue", image, point)
    return os.open(point, os.O_RDONLY | os.O_CLOEXEC)


def remove(folder: str) -> None:
    """Take away what ``make`` made, as far as it came; the loop device is freed with its last user."""
    _libc.umount2(folder.encode(), _MNT_DETACH)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def freeze(descriptor: int) -> None:
    """Let every write to the file system wait, uninterruptibly, until ``thaw``. Raises OSError."""
    fcntl.ioctl(descriptor, _FIFREEZE, 0)


def thaw(descriptor: int) -> None:
    """Let writes go on. Raises OSError when it is not frozen."""
    fcntl.ioctl(descriptor, _FITHAW, 0)


def fail(descriptor: int) -> str:
    """Have the kernel report an error of the file system, as ext4 offers it for tests; return the device.

    Raises OSError.
    """
    number = os.fstat(descriptor).st_dev
    device = os.path.basename(os.readlink(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))
    with open(f"/sys/fs/ext4/{device}/trigger_fs_error", "w", encoding="ascii") as trigger:
        trigger.write("foreshock inject")
    return device


def _must(failed: int) -> None:
    if failed:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _run(*command: str) -> None:
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=True, env={"PATH": _PATH}, stdin=quiet, stdout=quiet, stderr=quiet)
