"""Boxes of earlier boots and of agents that crashed, kept beside the one in use. Standard library only."""

from __future__ import annotations

import contextlib
import os
import time

from tracer.blackbox.scan import Scan

__all__ = ["kept_boxes", "set_aside"]

#: Boxes of earlier boots that stay, and boxes of agents that crashed in this one.
KEPT_BOOTS = 3
KEPT_CRASHES = 1


def kept_boxes(path: str) -> list[str]:
    """Return the boxes that were moved aside from ``path``, oldest first."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):
        names = [one for one in os.listdir(folder or ".") if one.startswith(f"{name}.") and _is_kept(one[len(name) :])]
        return [os.path.join(folder, one) for one in sorted(names, key=lambda one: one[-16:])]
    return []


def _is_kept(suffix: str) -> bool:
    """Return whether it is ``.BOOTID8-20261130T021431Z``."""
    boot, _, when = suffix[1:].partition("-")
    return len(boot) == 8 and len(when) == 16 and when[8] == "T" and when[-1] == "Z" and when[:8].isdigit()


def set_aside(fd: int, path: str, boot_id: str) -> list[str]:
    """Move a box out of the way, or remove one that never had anything in it. Return what to tell."""
    scan = Scan.of(fd)
    if scan is None or not scan.segments:
        os.unlink(path)
        return []
    boot = scan.segments[-1].head.boot_id[:8].ljust(8, "0")
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(os.fstat(fd).st_mtime))
    aside = f"{path}.{_plain(boot)}-{when}"
    os.rename(path, aside)
    _prune(path, boot_id, keep=aside)
    return [f"the previous black box is kept as {aside}"]


def _plain(boot: str) -> str:
    return "".join(character if character.isalnum() else "0" for character in boot)


def _prune(path: str, boot_id: str, *, keep: str) -> None:
    """Remove the oldest of the boxes moved aside. A crash loop of this boot must not push out the earlier boots'."""
    kept = [one for one in kept_boxes(path) if one != keep]
    ours = [one for one in kept if f".{_plain(boot_id[:8])}-" in one[len(path) :]]
    others = [one for one in kept if one not in ours]
    crash = f".{_plain(boot_id[:8])}-" in keep[len(path) :]
    for boxes, most in ((ours, KEPT_CRASHES - crash), (others, KEPT_BOOTS - (not crash))):
        for one in boxes[: max(0, len(boxes) - max(0, most))]:
            with contextlib.suppress(OSError):
                os.unlink(one)
