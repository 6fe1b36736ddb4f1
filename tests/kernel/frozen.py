"""A file system of our own that is frozen: whoever writes to it sleeps uninterruptibly until it is thawed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pytest

__all__ = ["Frozen"]

_WRITE = "import sys; open(sys.argv[1], 'wb', buffering=0).write(b'x')"


class Frozen:
    """A small ext4 on a loop device below ``folder``, frozen for the block; thawed and unmounted however it ends.

    ``prepare`` may put files into it before.
    """

    def __init__(self, folder: Path, prepare: Callable[[Path], object] = lambda mount: None) -> None:
        self._image, self.mount = folder / "image", folder / "foreshock-test-mount"
        self._prepare = prepare
        self._writers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Frozen:
        self._image.write_bytes(b"")
        self.mount.mkdir()
        with self._image.open("r+b") as file:
            file.truncate(8 << 20)
        try:
            _run("mkfs.ext4", "-q", "-F", self._image)
            _run("mount", "-o", "loop", self._image, self.mount)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no file system of our own can be mounted here: {error}")
        try:
            self._prepare(self.mount)
            _run("fsfreeze", "--freeze", self.mount)
        except BaseException:
            _run("umount", self.mount)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()
        _run("umount", self.mount)

    def block(self) -> int:
        """Start a process that writes; return its pid."""
        name = self.mount / f"file{len(self._writers)}"
        self._writers.append(subprocess.Popen([sys.executable, "-S", "-c", _WRITE, name]))
        return self._writers[-1].pid

    def thaw(self) -> None:
        """Let the writers go on, and wait for their end."""
        with suppress(subprocess.CalledProcessError):  # thawed already
            _run("fsfreeze", "--unfreeze", self.mount)
        for writer in self._writers:
            writer.wait(timeout=10)


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
