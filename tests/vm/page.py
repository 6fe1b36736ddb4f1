"""docs/panic-lab.md, from runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tests.bench.results import table

from .scenarios import SCENARIOS
from .score import Run

__all__ = ["page", "results"]

NOTE = "<!-- Written by `make lab` from what it measured: edit tests/vm, not this page. -->"
INTRODUCTION = (
    "Kernels that really panic, and what was known before. `make lab` boots Debian's kernel in an emulated machine "
    "(QEMU, TCG, two CPUs) for each scenario, runs `foreshock agent` in it, makes the fault, and waits for the end; "
    '`make lab LAB="softirq-lockup rcu-stall"` runs some of them. The machine that it runs on receives the alerts as '
    "another host would, over TCP with `foreshock fleet serve`, and the serial console. All times are by its one "
    "clock: when the alert was there, and when the panic's first line was. The emulated CPUs are some ten times slower "
    "than real ones, and nothing is made up for that: the kernel's own timers are as on any machine. Each row is the "
    "scenario's latest run."
)
GOALS = (
    "What is asked of a run: a precursor is alerted before its panic, by a rule that is meant for it, and the culprit "
    "is named. A soft lockup or RCU stall is alerted in the first quarter of the time. A timer's countdown, as first "
    "told, is right within 20 %; that of a slope, half-way. A countdown that has run out without a panic, and was not "
    "taken back before, is a miss. The receiver reports the silent node, and where nothing can be known before, the "
    "black box holds all but the last 2 s. “first alert” and “panic” count from the fault; “≤ 23.0 s (-8%)” is a panic "
    "that came later than was said by 8 % of the time that was left."
)


def results(runs: Sequence[Run]) -> str:
    """Return the table of what was seen before, one row per run."""
    head = ("scenario", "kernel", "first alert", "culprit named", "countdown said", "panic", "lead time", "goals")
    return table(head, [_row(run) for run in runs])


def page(runs: Sequence[Run], facts: Iterable[tuple[str, str]]) -> str:
    """Return the whole page; ``facts`` describe the machine that it was measured on."""
    met = sum(not list(run.misses()) for run in runs)
    missing = SCENARIOS.keys() - {run.scenario.name for run in runs}
    parts = [
        "# The lab: real panics",
        NOTE,
        INTRODUCTION,
        GOALS,
        f"**{met} of {len(runs)} scenarios meet every goal.**"
        + (f" Not run: {', '.join(sorted(missing))}." if missing else ""),
        results(runs),
        "## What was left afterwards",
        "From the black box on the guest's disk (`foreshock postmortem`), and from the receiver's dead-man rule, which "
        "waits for three intervals of silence. A black box that ends earlier was waiting for its file system, which "
        "waited for the CPU that was stuck; then the receiver has the rest. A silence reported before the panic is the "
        "agent's: it sends windows, and was on the CPU that was stuck; its sentinels still alert.",
        table(
            ("scenario", "black box ends before the panic by", "alerts in it", "silence reported after"),
            [
                (run.scenario.name, _seconds(run.box_s), run.box_alerts, _seconds(run.silent_s))
                for run in runs
                if run.scenario.panic
            ],
        ),
        "## The scenarios",
        *(part for run in runs for part in _scenario(run)),
        "## The machine",
        table(("", ""), list(facts)).replace("---:", "---"),
    ]
    return "\n\n".join(part if part.startswith(("|", "#", "<")) else _fill(part) for part in parts) + "\n"


def _fill(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)


def _row(run: Run) -> tuple[str, ...]:
    named = "" if run.scenario.culprit or not run.scenario.rules else "not asked"
    if run.scenario.culprit and run.first:
        named = "yes" if run.named else f"**no**: {run.accused or 'nobody'}"
    return (
        run.scenario.name,
        run.kernel.removesuffix("-amd64"),
        _alert(run),
        named,
        _countdown(run),
        _seconds(run.panic_s) if run.panic else "none",
        _seconds(run.lead_s),
        "; ".join(run.misses()) or "met",
    )


def _alert(run: Run) -> str:
    if not run.scenario.rules:
        return "no precursor" if run.scenario.panic else ", ".join(run.others) or "nothing"
    if run.alert_s is None or not run.first:
        return "**none**"
    share = f" ({run.alert_s / run.panic_s:.0%})" if run.panic_s else ""
    return f"{run.alert_s:.1f} s{share}, {run.first.alert['rule']}"


def _countdown(run: Run) -> str:
    if not run.first:
        return ""
    if run.countdown_s is None:
        return "no panic" if run.first.alert.get("countdown") else "no countdown"
    error = f" ({run.countdown_error:+.0%})" if run.countdown_error is not None else ""
    return f"≤ {run.countdown_s:.1f} s{error}"


def _scenario(run: Run) -> Iterator[str]:
    scenario = run.scenario
    yield f"### {scenario.name}"
    yield " ".join(filter(None, (scenario.fault, scenario.why)))
    if run.first:
        yield f"First: “{run.first.alert['headline']}”"
        if run.named and run.named is not run.first:
            yield f"The culprit was named {_seconds((run.named.at_ns - run.first.at_ns) / 1e9)} later."
    if run.others:
        yield f"Other rules that spoke before the end: {', '.join(run.others)}."
    if scenario.panic and run.story.get("sentences"):
        yield f"Afterwards: “{run.story['sentences'][0]}”"
    yield f"Measured {run.measured}."


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"
