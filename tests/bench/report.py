"""Reports and exports: how long they take beside flamegraph.pl, how large they are, how quick the page is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from tracer.recording import RecordingWriter

from .browser import opened, seconds_to_change, seconds_to_paint
from .machine import CHECKOUT, command, folder, say, shown
from .manyhours import header, intervals
from .manystacks import CPUS, FUNCTIONS, HZ, SAMPLES, STACKS, write
from .results import Check, Section, table

__all__ = ["measure"]

REPORT_SECONDS, REPORT_MB, FOLDED_SECONDS = 2.0, 300, 1.0
HEAT_SECONDS, HEAT_SERIES = 3.0, 20
PAINT_SECONDS, CHANGE_SECONDS = 1.5, 0.150
DAY_SECONDS, DAY_STEP, DAY_CPUS = 86_400, 60, 2
#: What Debian has of FlameGraph.
_FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
#: A process's record of memory begins with its parent's: this one is small.
_LAUNCH = """
import os, sys, time
began = time.monotonic()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(process, 0)
took = time.monotonic() - began
os.write(int(sys.argv[1]), b"%f %f %f" % (took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""
_RANGES = ("5-20", "10-40", "0-30", "20-22", "1-59", "0-80", "40-41")


def measure(rounds: int) -> Section:
    """Make reports of a million samples and of a day, fold the former, and open both."""
    section = Section("Reports")
    _measure_stacks(section, rounds)
    _measure_day(section, rounds)
    return section


@dataclass(frozen=True)
class _Run:
    """What one run of a program took, its CPU time, most resident memory and how large its output is."""

    seconds: float
    cpu_seconds: float
    megabytes: float
    output: int


def _measure_stacks(section: Section, rounds: int) -> None:
    recording = folder() / "stacks.fsk"
    html, folded, svg = (recording.with_suffix(suffix) for suffix in (".html", ".folded", ".svg"))
    flamegraph = command(_FLAMEGRAPH, "libdevel-nytprof-perl", "to compare with")
    write(recording)
    reports, exports, graphs = [], [], []
    for _ in range(rounds):
        reports.append(_foreshock("report", recording, html))
        exports.append(_foreshock("export", recording, folded, "--format", "folded"))
        graphs.append(_run([flamegraph, "--countname", "ns", str(folded)], svg))
    took, fold, graph = (_seconds(runs) for runs in (reports, exports, graphs))
    resident = max(one.megabytes for one in reports)
    say(f"report: {took:.2f} s, {resident:.0f} MB; folded {fold:.2f} s; flamegraph.pl {graph:.2f} s")
    paint = [seconds_to_paint(html) for _ in range(rounds)]
    with opened(html) as page:
        change = seconds_to_change(page, [f"range={one}" for one in _RANGES * rounds])
    say(f"report: painted after {shown(paint)} s, another range after {shown(change)} s")
    samples = f"{SAMPLES:,} samples"
    section.checks += [
        _check(f"report of {samples}", took, REPORT_SECONDS),
        Check("its memory", f"{resident:.0f} MB", f"≤ {REPORT_MB} MB", resident <= REPORT_MB),
        _check("the same as folded stacks", fold, FOLDED_SECONDS),
        Check("report / flamegraph.pl", f"{took / graph:.2f}×", "≤ 1×", took <= graph),
        _check("page with 50,000 frames painted", median(paint), PAINT_SECONDS),
        _check("another range painted", median(change), CHANGE_SECONDS),
    ]
    section.blocks += [
        f"A deep recording, made up: {CPUS} busy CPUs at {HZ} Hz, {samples} of {STACKS:,} different stacks of about 20 "
        f"of {FUNCTIONS:,} functions. The programs run by turns, {rounds} times each, interpreter's start included; "
        "memory is the most that was resident. flamegraph.pl, as Debian has it (libdevel-nytprof-perl), draws one "
        "picture of the folded stacks that the export wrote, whose time is not counted; the report reads the "
        "recording, and holds the stacks of every second.",
        table(
            ("", "seconds", "of CPU", "memory, MB", "file, MB"),
            [
                _row("foreshock report", reports),
                _row("foreshock export --format folded", exports),
                _row("flamegraph.pl", graphs),
            ],
        ),
        f"The report in Chromium, 1280 pixels wide, with 50,000 frames (what weighs least is in [pruned] ones): "
        f"painted {shown(paint)} s after the file is opened; another range {shown([1e3 * one for one in change])} ms "
        f"after it was asked for ({len(change)} times), with all tables and pictures.",
    ]


def _measure_day(section: Section, rounds: int) -> None:
    recording = folder() / "day.fsk"
    html = recording.with_suffix(".html")
    with RecordingWriter(recording, header(DAY_CPUS, DAY_STEP)) as writer:
        for windows in intervals(DAY_CPUS, DAY_SECONDS // DAY_STEP, DAY_STEP):
            writer.write(windows)
    runs = [_foreshock("report", recording, html) for _ in range(rounds)]
    say(f"report: a day in {_seconds(runs):.2f} s")
    paint = [seconds_to_paint(html) for _ in range(rounds)]
    with opened(html) as page:
        names = page.locator("#series option").all_inner_texts()
        assert len(names) >= HEAT_SERIES, names
        change = seconds_to_change(page, [urlencode({"series": name}) for name in names])
    section.checks += [_check(f"report of 24 h, {len(names)} series", _seconds(runs), HEAT_SECONDS)]
    section.blocks += [
        f"A day of all light probes, made up: {DAY_SECONDS // DAY_STEP} intervals of {DAY_STEP} s, {DAY_CPUS} CPUs, "
        f"{len(names)} series of the heatmap, which has a column for each interval. The whole report takes "
        f"{shown([one.seconds for one in runs])} s, {shown([one.cpu_seconds for one in runs])} of CPU, and "
        f"{max(one.megabytes for one in runs):.0f} MB; in Chromium it is painted after {shown(paint)} s, and another "
        f"series {shown([1e3 * one for one in change])} ms after it was asked for.",
    ]


def _check(what: str, seconds: float, target: float) -> Check:
    if target < 1:
        return Check(what, f"{1e3 * seconds:.0f} ms", f"≤ {1e3 * target:g} ms", seconds <= target)
    return Check(what, f"{seconds:.2f} s", f"≤ {target:g} s", seconds <= target)


def _row(name: str, runs: Sequence[_Run]) -> tuple[str, ...]:
    sizes = f"{max(one.megabytes for one in runs):.0f}", f"{runs[-1].output / 1e6:.1f}"
    return name, shown([one.seconds for one in runs]), shown([one.cpu_seconds for one in runs]), *sizes


def _seconds(runs: Sequence[_Run]) -> float:
    return median(one.seconds for one in runs)


def _foreshock(verb: str, recording: Path, output: Path, *options: str) -> _Run:
    call = [sys.executable, "-m", "tracer", verb, str(recording), *options, "--overwrite", "-o", str(output)]
    return _run(call, output)


def _run(call: Sequence[str], output: Path) -> _Run:
    """Run a program; what it prints goes to ``output``, unless it writes that itself."""
    told, written = os.pipe()
    launched = [sys.executable, "-ISc", _LAUNCH, str(written), *call]
    with open(os.devnull if "-o" in call else output, "w") as printed, os.fdopen(told) as figures:
        subprocess.run(launched, cwd=CHECKOUT, stdout=printed, pass_fds=[written], check=True)
        os.close(written)
        return _Run(*map(float, figures.read().split()), output.stat().st_size)
