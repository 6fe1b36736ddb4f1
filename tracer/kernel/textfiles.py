"""Read small files of /proc and /sys: what isn't there is None, what isn't text still becomes text."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["decoded", "names", "number", "present", "text"]

_LIMIT = 4096


def text(path: str, limit: int = _LIMIT) -> str | None:
    """Return the first ``limit`` bytes of a file without surrounding white space; None when it can't be read.

    One read only: files of /proc that hold a record per CPU are not asked for the rest.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return decoded(os.read(fd, limit).strip())
    except OSError:
        return None
    finally:
        os.close(fd)


def number(path: str) -> int | None:
    """Return a file's decimal number; None when it can't be read or holds something else."""
    content = text(path, 32)
    try:
        return int(content) if content is not None else None
    except ValueError:
        return None


def names(folder: str) -> list[str]:
    """Return the sorted names in a folder, none when it can't be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def present(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs that have a value: what is missing is left out, never made up."""
    return {name: value for name, value in pairs if value is not None and value != {} and value != []}


def decoded(raw: bytes) -> str:
    r"""Return bytes as text that any encoder takes: bytes that aren't UTF-8 become ``\xff``."""
    return raw.decode(errors="backslashreplace")
