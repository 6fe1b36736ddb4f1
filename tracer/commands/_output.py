"""Where a result goes: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from tracer.errors import OutputError
from tracer.recording.paths import shown

__all__ = ["new_folder", "output", "refuse_existing"]


@contextmanager
def output(path: str | None, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Yield a stream; None is standard output. A file has mode 0600: it names the node's processes.

    Raises OutputError.
    """
    if path is None or path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    refuse_existing(path, overwrite)
    try:
        # Beside the file it becomes: a link can't lead to another file system.
        folder = os.path.dirname(path) or "."
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".foreshock-")
    except OSError as error:
        raise _error(path, error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        (os.replace if overwrite else _link)(temporary, path)
    except OSError as error:
        raise _error(path, error) from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)


@contextmanager
def new_folder(path: str) -> Iterator[Callable[[str], IO[bytes]]]:
    """Yield what opens a file of that name in a new folder, which is gone again when that fails. Raises OutputError.

    The folder has mode 0700, its files 0600: they may be copied to where the folder's mode protects nothing.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        raise OutputError(f"{shown(path)} exists.", hint="choose another name: a folder is not replaced") from None
    except OSError as error:
        raise _error(path, error) from None
    try:
        yield lambda name: open(os.path.join(path, name), "xb", opener=_private)  # noqa: SIM115
    except BaseException as error:
        shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError):
            raise _error(path, error) from None
        raise


def refuse_existing(path: str, overwrite: bool, inputs: Iterable[str] = ()) -> None:
    """Raise OutputError when ``path`` is there already and may not be replaced: before the work, not after it.

    Never replaced: what is no plain file (the rename would take a device's or a link's place), and what is read.
    """
    if os.path.isdir(path):
        raise OutputError(f"{shown(path)} is a folder.", hint="name a file in it")
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isfile(path):
        raise OutputError(f"{shown(path)} is no plain file.", hint="choose another name; - is standard output")
    if any(os.path.exists(one) and os.path.samefile(one, path) for one in inputs):
        raise OutputError(f"{shown(path)} is what is read.", hint="choose another name")
    if not overwrite:
        raise OutputError(f"{shown(path)} exists.", hint="choose another name, or replace it with --overwrite")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _link(temporary: str, path: str) -> None:
    os.link(temporary, path)  # fails, unlike a rename, where somebody else was faster


def _error(path: str, error: OSError) -> OutputError:
    if isinstance(error, FileExistsError):
        return OutputError(f"{shown(path)} exists.", hint="choose another name, or replace it with --overwrite")
    reason = (error.strerror or str(error)).lower()
    return OutputError(f"can't write {shown(path)}: {reason}.", hint="choose another path")
