"""What the kernel saved of its log when it died: pstore, and where systemd-pstore moves its records.

The text was written by whatever the kernel printed, names of tasks included: it is kept as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.kernel.textfiles import decoded

__all__ = ["PLACES", "LastWords", "read_last_words"]

#: pstore itself; records that systemd-pstore.service(8) took out of it at boot.
PLACES = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
_MOST_FILES = 256
_MOST_BYTES = 1 << 20
_MOST_LINES = 8
_MOST_LENGTH = 512
_PANIC = re.compile(r"Kernel panic - not syncing: .*")
#: What a dying kernel says first. Sources: kernel/watchdog.c, kernel/hung_task.c, kernel/rcu/tree_stall.h,
#: arch/x86/kernel/dumpstack.c, lib/bug.c, mm/oom_kill.c.
_TELLING = re.compile(
    r"BUG: .*|Oops: .*|kernel BUG at .*|watchdog: .*|INFO: task .* blocked for .*|rcu: INFO: .*|RIP: \S+:\S+.*"
    r"|Unable to handle kernel .*|Out of memory.*|WARNING: CPU: .*"
)
_TIME = re.compile(r"\[ *(\d{1,12})\.(\d{6})\]")


@dataclass(frozen=True)
class LastWords:
    """The lines of one panic.

    ``panic``: its line, "" when only an oops or less was saved. ``lines``: what was said before it, that line included.
    ``at_ns``: by the kernel log's clock, which is close to CLOCK_MONOTONIC of that boot; None when lines had no time.
    """

    file: str
    panic: str
    lines: tuple[str, ...]
    at_ns: int | None


def read_last_words(places: Sequence[str] = PLACES) -> list[LastWords]:
    """Return what the records in the folders say, one entry per record that says something; panics first."""
    found = [words for path in _files(places) if (words := _words(path)) is not None]
    return sorted(found, key=lambda words: (not words.panic, words.file))


def _files(places: Sequence[str]) -> list[str]:
    files: list[str] = []
    for place in places:
        # systemd-pstore makes a folder per boot, and one more in it when a boot has several.
        for folder, folders, names in os.walk(place):
            folders.sort()
            files += [os.path.join(folder, name) for name in sorted(names) if name.startswith("dmesg")]
            if len(files) >= _MOST_FILES or folder.count("/") > place.rstrip("/").count("/") + 2:
                folders.clear()
    return files[:_MOST_FILES]


def _words(path: str) -> LastWords | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # One read of a file of pstore may return less than all of it.
        data = b""
        while len(data) < _MOST_BYTES and (piece := os.read(fd, _MOST_BYTES - len(data))):
            data += piece
    except OSError:
        return None
    finally:
        os.close(fd)
    return _understood(path, decoded(data))


def _understood(path: str, text: str) -> LastWords | None:
    lines: list[str] = []
    panic, at_ns = "", None
    for line in text.splitlines():
        match = _PANIC.search(line) or _TELLING.search(line)
        if match is None:
            continue
        said, is_panic = match[0][:_MOST_LENGTH].rstrip(), match[0].startswith("Kernel panic")
        if (is_panic and not panic) or at_ns is None:
            at_ns = _time_ns(line) or at_ns
        if is_panic:
            panic = panic or said
        if said not in lines and (len(lines) < _MOST_LINES - 1 or said == panic):
            lines.append(said)
    return LastWords(path, panic, tuple(lines[:_MOST_LINES]), at_ns) if lines else None


def _time_ns(line: str) -> int | None:
    match = _TIME.search(line)
    return int(match[1]) * 10**9 + int(match[2]) * 1000 if match else None
