"""Make a story of a black box, or of a recording that was cut off."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.blackbox.box import Box, is_box
from tracer.blackbox.kept import kept_boxes
from tracer.blackbox.redact import Redactor
from tracer.errors import RecordingError, UsageError
from tracer.kernel.pstore import PLACES, LastWords, read_last_words
from tracer.kernel.textfiles import text
from tracer.recording import RecordingReader
from tracer.reports.story import Ending, Panic, Story, signs_of
from tracer.window import Window

__all__ = ["boot_now", "latest_box", "story_of", "story_of_copy"]

_KEPT_BYTES = 64 << 20
#: The kernel's log clock and CLOCK_MONOTONIC may differ by this much; an agent may have been stuck for so long before.
_BEFORE_NS, _AFTER_NS = 10_000_000_000, 600_000_000_000


def boot_now() -> str:
    """Return the id of this machine's present boot; "" where there is none."""
    return text("/proc/sys/kernel/random/boot_id", 64) or ""


def latest_box(path: str) -> str:
    """Return the box that tells of the previous boot, if ``path`` or one kept beside it does; else ``path``.

    Raises RecordingError when there is none.
    """
    now, kept = boot_now(), kept_boxes(path)
    if not kept and not os.path.exists(path):
        hint = f"foreshock agent --blackbox {path} writes one; name the path of any other"
        raise RecordingError(f"this machine has no black box at {path}.", hint=hint)
    for one in (path, *reversed(kept)):
        try:
            with Box(one) as box:
                if box.boot_id != now:
                    return one
        except RecordingError:
            continue
    return path


def story_of(path: str, last_ns: int, pstore: Sequence[str] = ()) -> tuple[Story, bool]:
    """Return the story with the last ``last_ns`` in it, and whether a part of it is damaged.

    ``pstore``: folders of the kernel's saved log instead of this machine's. Raises RecordingError, UsageError.
    """
    if not is_box(path) and _is_recording(path):
        if pstore:
            raise UsageError("--pstore would do nothing with a recording.", hint="leave it out")
        return _of_recording(path, last_ns)
    with Box(path) as box:
        return _of_box(box, last_ns, pstore)


def story_of_copy(box: Box, copied: str, last_ns: int, pstore: Sequence[str], redactor: Redactor | None) -> Story:
    """Return the story of a copy of ``box``, redacted if there is a ``redactor``; what is missing is the box's."""
    now = _now(box)
    with Box(copied) as copy:
        story, _ = _of_box(copy, last_ns, pstore, now=now, live=box.live)
    if redactor is None:
        return replace(story, path=os.path.basename(box.path), missing=_missing(box))
    hidden = [
        replace(
            one,
            line=redactor.text(one.line),
            lines=tuple(map(redactor.text, one.lines)),
            file=one.file if one.file.startswith(PLACES) else redactor.name(one.file),
        )
        for one in story.panics
    ]
    searched = tuple(one if one in PLACES else redactor.name(one) for one in story.searched)
    return replace(story, path=os.path.basename(copied), missing=_missing(box), panics=tuple(hidden), searched=searched)


def _of_box(
    box: Box, last_ns: int, pstore: Sequence[str], *, now: str | None = None, live: bool = False
) -> tuple[Story, bool]:
    source = Source.from_header(box.header)
    signs, unkept = signs_of(box.alerts())
    now = _now(box) if now is None else now
    ending = _ending(box, now, live or box.live)
    # A live box, and the boot that goes on, have no last words yet; those of another machine are not here.
    searched = tuple(pstore) or (PLACES if now and ending is Ending.DIED else ())
    summary = _summary(source, box.intervals(last_ns))
    story = Story(
        path=box.path,
        source=source,
        boot_id=box.boot_id,
        boot_now=now,
        ending=ending,
        goodbye=box.goodbye or "",
        starts=box.starts,
        first_unix_ns=box.first.unix_ns,
        last_unix_ns=box.last.unix_ns,
        last_ns=box.last.monotonic_ns,
        summary=summary,
        signs=signs,
        unkept=unkept,
        missing=_missing(box),
        panics=tuple(_panic(words, box.last.monotonic_ns) for words in read_last_words(searched)),
        searched=searched,
    )
    return story, bool(box.missing.damaged) or summary.damaged


def _now(box: Box) -> str:
    """Return this machine's boot id, if the box is of this machine."""
    now = boot_now()
    return now if box.boot_id == now or box.header.get("host") == os.uname().nodename else ""


def _missing(box: Box) -> dict[str, int]:
    return {name: number for name, number in asdict(box.missing).items() if number}


def _ending(box: Box, now: str, live: bool) -> Ending:
    if live:
        return Ending.LIVE
    if box.goodbye is not None:
        return Ending.STOPPED
    return Ending.AGENT_GONE if now and box.boot_id == now else Ending.DIED


def _panic(words: LastWords, last_ns: int) -> Panic:
    ours = None if words.at_ns is None else -_BEFORE_NS <= words.at_ns - last_ns <= _AFTER_NS
    return Panic(words.panic, words.lines, words.file, words.at_ns, ours)


def _summary(source: Source, intervals: Iterable[list[Window]]) -> Summary:
    summary = Summary(source.interval_ns, source)
    for windows in intervals:
        summary.add_interval(windows)
    return summary


def _is_recording(path: str) -> bool:
    if not os.path.isfile(path):
        return False  # a pipe would be waited for
    try:
        RecordingReader(path).close()
    except RecordingError:
        return False
    return True


def _of_recording(path: str, last_ns: int) -> tuple[Story, bool]:
    kept: deque[list[Window]] = deque()
    size = first_ns = last = 0
    with RecordingReader(path) as reader:
        source = Source.from_header(reader.header)
        for windows in filter(None, reader):
            kept.append(windows)
            size += _size(windows)
            last = max(window.end_ns for window in windows)
            first_ns = first_ns or min(window.start_ns for window in windows)
            while len(kept) > 1 and (size > _KEPT_BYTES or kept[0][0].end_ns <= last - last_ns):
                size -= _size(kept.popleft())
    summary = _summary(source, kept)
    story = Story(
        path=path,
        source=source,
        boot_id=source.boot_id,
        boot_now=boot_now() if source.host == os.uname().nodename else "",
        ending=Ending.STOPPED if reader.truncated is None else Ending.CUT_OFF,
        goodbye="",
        starts=0,
        first_unix_ns=source.unix_ns(first_ns),
        last_unix_ns=source.unix_ns(last),
        last_ns=last,
        summary=summary,
        warning=reader.warning,
    )
    return story, bool(reader.damage) or summary.damaged


def _size(windows: list[Window]) -> int:
    return sum(window.rows.nbytes for window in windows)
