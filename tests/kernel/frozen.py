"""A file system of our own that is frozen: whoever writes to it sleeps uninterruptibly until it is thawed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pytest

__all__ = ["Frozen"]

_WRITE = "import sys; open(sys.argv[1], 'wb', buffering=0).write(b'x')"


class Frozen:
    """A small ext4 on a loop device below ``folder``, frozen for the block; thawed and unmounted however it ends."""

    def __init__(self, folder: Path) -> None:
        self._image, self._mount = folder / "image", folder / "foreshock-test-mount"
        self._writers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Frozen:
        self._image.write_bytes(b"")
        self._mount.mkdir()
        with self._image.open("r+b") as file:
            file.truncate(8 << 20)
        try:
            _run("mkfs.ext4", "-q", "-F", self._image)
            _run("mount", "-o", "loop", self._image, self._mount)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no file system of our own can be mounted here: {error}")
        try:
            _run("fsfreeze", "--freeze", self._mount)
        except BaseException:
            _run("umount", self._mount)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()
        _run("umount", self._mount)

    def block(self) -> int:
        """Start a process that writes; return its pid."""
        name = self._mount / f"file{len(self._writers)}"
        self._writers.append(subprocess.Popen([sys.executable, "-S", "-c", _WRITE, name]))
        return self._writers[-1].pid

    def thaw(self) -> None:
        """Let the writers go on, and wait for their end."""
        with suppress(subprocess.CalledProcessError):  # thawed already
            _run("fsfreeze", "--unfreeze", self._mount)
        for writer in self._writers:
            writer.wait(timeout=10)


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
