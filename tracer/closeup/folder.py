"""The folder of close-ups: made for us alone, bounded in number and size, swept of what a crash has left."""

from __future__ import annotations

import calendar
import contextlib
import os
import re
import shlex
import stat
import time

from tracer.alerts.alert import Alert
from tracer.closeup.terms import MOST_BYTES, MOST_KEPT
from tracer.errors import OutputError
from tracer.escape import printable
from tracer.recording.paths import shown

__all__ = ["begun_ns", "latest", "name_of", "prepare", "prune", "put"]

#: Names of ours: nothing else in the folder is counted, or removed.
_NAME = re.compile(r"\d{8}T\d{6}Z-[a-z0-9-]{1,40}-[0-9a-f]{8}\.(?:fsk|html)")
_UNFINISHED = re.compile(r"\.\d{8}T\d{6}Z-[a-z0-9-]{1,40}-[0-9a-f]{8}\.(?:fsk|html)")
_TIME, _STAMP = "%Y%m%dT%H%M%SZ", 16
_HINT = "--closeup-folder DIR, on a disk with some room"


def prepare(path: str) -> None:
    """Make the folder, mode 0700, and remove what was begun and not finished. Raises OutputError."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise OutputError(
            f"{shown(path)} can't be made: {(error.strerror or str(error)).lower()}.", hint=_HINT
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OutputError(
            f"{shown(path)} is not a folder of our own.", hint="--closeup-folder DIR, which is made if it is not there"
        )
    if found.st_mode & 0o077:
        raise OutputError(
            f"{shown(path)} may be entered by others, and recordings hold names.",
            hint=f"chmod 700 {shlex.quote(printable(path))}, or --closeup-folder DIR, which is made if it is not there",
        )
    if not os.access(path, os.W_OK):
        raise OutputError(f"{shown(path)} can't be written.", hint=_HINT)
    for name in os.listdir(path):
        if _UNFINISHED.fullmatch(name):
            _remove(os.path.join(path, name))


def name_of(alert: Alert) -> str:
    """Return what an alert's files are called, without the ending: when, the rule, the alert."""
    rule = re.sub(r"[^a-z0-9-]", "-", alert.rule.lower())[:40] or "alert"
    id = re.sub(r"[^0-9a-f]", "0", alert.id.lower())[:8].ljust(8, "0")
    return f"{time.strftime(_TIME, time.gmtime())}-{rule}-{id}"


def begun_ns(path: str, now_ns: int) -> list[int]:
    """Return when the close-ups that are kept were made, by the wall clock, in order; ``now_ns`` is now."""
    stems = {name[:_STAMP] for name in os.listdir(path) if _NAME.fullmatch(name)}
    ages = []
    for stem in stems:
        with contextlib.suppress(ValueError):
            ages.append(time.time() - calendar.timegm(time.strptime(stem, _TIME)))
    return sorted(now_ns - int(max(0.0, age) * 1e9) for age in ages)


def latest(path: str) -> str:
    """Return the report of the latest close-up that is kept, or its recording; "" if there is none."""
    names = sorted((name for name in os.listdir(path) if _NAME.fullmatch(name)), reverse=True)
    return os.path.join(path, names[0]) if names else ""


def prune(path: str, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
    """Remove the oldest files of ours until there are fewer than ``most`` close-ups and ``most_bytes``."""
    sizes: dict[str, int] = {}
    for name in os.listdir(path):
        if _NAME.fullmatch(name):
            with contextlib.suppress(OSError):
                sizes[name] = os.lstat(os.path.join(path, name)).st_size
    kept = {os.path.splitext(name)[0] for name in sizes}
    for stem in sorted(kept):
        if len(kept) < most and sum(sizes.values()) <= most_bytes:
            return
        kept.discard(stem)
        for name in [name for name in sizes if os.path.splitext(name)[0] == stem]:
            del sizes[name]
            _remove(os.path.join(path, name))


def put(folder: str, name: str, data: bytes) -> str:
    """Write a file that appears whole or not at all, mode 0600; return its path. Raises OSError."""
    path, beside = os.path.join(folder, name), os.path.join(folder, f".{name}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.rename(beside, path)
    except OSError:
        _remove(beside)
        raise
    return path


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
