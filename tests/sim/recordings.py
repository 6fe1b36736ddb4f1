"""Write recordings of many nodes, made of the windows of a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tracer.analysis.rows import has
from tracer.recording import Recording, RecordingWriter, read_recording
from tracer.window import Window

__all__ = ["DEMO", "Change", "slower", "twin", "write_twins"]

DEMO = Path(__file__).parents[2] / "tracer" / "sample" / "demo.fsk"
#: What a fault does to a window of interval ``number``.
Change = Callable[[int, Window], Window]


def twin(
    path: Path,
    source: Recording,
    host: str,
    *,
    seconds: int = 60,
    seed: int = 0,
    change: Change | None = None,
    skew_ns: int = 0,
    header: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    end: bool = True,
) -> Path:
    """Write a recording of a node called ``host`` that does what ``source`` does, in another order.

    Values differ from node to node by what drawing them anew makes of them. ``without``: probes that it did not record.
    """
    random = np.random.default_rng([seed, *host.encode()])
    told = {**source.header, "host": host, "boot_id": f"boot of {host}", **(header or {})}
    told["fingerprint"] = {**source.header.get("fingerprint", {}), "host": host, **told.get("fingerprint", {})}
    told["fingerprint"].pop("kernel", None)
    told["clock_offset_ns"] = source.header["clock_offset_ns"] + skew_ns
    interval_ns = source.header["interval_ns"]
    start_ns = source.intervals[0][0].start_ns
    writer = RecordingWriter(path, told)
    for number in range(seconds):
        windows = source.intervals[int(random.integers(1, len(source.intervals)))]
        begin = start_ns + number * interval_ns
        made = []
        for window in windows:
            if window.probe in without:
                continue
            one = replace(window, start_ns=begin, end_ns=begin + interval_ns, rows=_redrawn(window.rows, random))
            made.append(change(number, one) if change else one)
        writer.write(made)
    if end:
        writer.close()
    return path


def write_twins(
    folder: Path, number: int, changes: Mapping[int, Change] | None = None, *, source: Path = DEMO, **options: Any
) -> list[str]:
    """Write recordings of the nodes cu00, cu01, …; ``changes`` says what some of them do otherwise."""
    recording = read_recording(source)
    return [
        str(
            twin(
                *(folder / f"cu{place:02d}.fsk", recording, f"cu{place:02d}"),
                seed=place,
                change=(changes or {}).get(place),
                **options,
            )
        )
        for place in range(number)
    ]


def slower(
    table: tuple[str, str], slots: int, *, since: int = 0, share: float = 1.0, vector: int | None = None
) -> Change:
    """Return a fault: ``share`` of the values of a table take ``2**(slots/8)`` times as long.

    It begins with interval ``since``.
    """

    def change(number: int, window: Window) -> Window:
        if (window.probe, window.table) != table or number < since or not has(window.rows, "slots"):
            return window
        rows = window.rows.copy()
        chosen = np.ones(len(rows), bool) if vector is None else rows["vector"] == vector
        rows["slots"][chosen] = moved(rows["slots"][chosen], slots, share)
        return replace(window, rows=rows)

    return change


def moved(slots: np.ndarray, by: int, share: float) -> np.ndarray:
    """Return histograms ``(…, SLOTS)`` of which ``share`` of the values lie ``by`` slots higher."""
    part = np.rint(slots * share).astype(slots.dtype)
    higher = np.zeros_like(slots)
    higher[..., by:] = part[..., : slots.shape[-1] - by]
    return slots - part + higher


def _redrawn(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if not len(rows) or not has(rows, "slots"):
        return rows
    drawn = rows.copy()
    drawn["slots"] = random.poisson(rows["slots"])
    return drawn
