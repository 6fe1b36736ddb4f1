"""The comparison of cohorts as text and for programs: the verdict first, then numbers, what else differs, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.cohorts.rollout import Effect, Rollout
from tracer.cohorts.verdict import by_how_much, days, headline, named
from tracer.compare import limits
from tracer.compare.verdict import amount
from tracer.reports.layout import Column, Style, wrap
from tracer.reports.narrow import LEAST_WIDTH
from tracer.reports.sections._section import ROWS, Section, as_lines, more
from tracer.units import MISSING, count, duration, many, moment, percent

__all__ = ["SCHEMA", "as_dict", "render"]

SCHEMA = "foreshock.cohorts/1"
_PROSE_WIDTH = 110
_LISTED = 5
_BY_START = "the recordings are of different times: they are laid beside each other from their starts"


def render(
    rollout: Rollout, skipped: Sequence[tuple[str, str]] = (), *, width: int = 80, color: bool = False
) -> list[str]:
    """Return the comparison as lines of at most ``width`` (at least 40) cells.

    ``skipped`` are recordings that could not be read, with the reason.
    """
    width, style = max(width, LEAST_WIDTH), Style(color)
    prose = min(width, _PROSE_WIDTH)
    striking = ("bold", "yellow") if rollout.told else ("bold",)
    lines = [style(line, *striking) for line in wrap(headline(rollout), prose, "", "  ")]
    lines += ["", *wrap(_scope(rollout), prose)]
    rest = [one for one in rollout.effects if not one.told]
    for title, effects in (("DIFFERENT", rollout.told), ("WITHIN THE NOISE, OR TOO LITTLE TO MATTER", rest)):
        lines += _effects(title, rollout, effects, width, style)
    lines += _splits(rollout, width, style)
    limiting = _limits(rollout, skipped)
    if limiting:
        lines += ["", style("Limits:", "bold")]
        lines += [line for one in limiting for line in wrap(one, prose, "  - ", "    ")]
    return lines


def _scope(rollout: Rollout) -> str:
    grid = rollout.grid
    start, end = grid.unix_ns(0), grid.unix_ns(grid.windows)
    when = f", {moment(start)} to {moment(end)}" if start == start else ""
    sizes = [f"{named(one.value)} {count(len(one.units))}" for one in (rollout.reference, *rollout.others)]
    sizes[0] += f" (the reference: {rollout.why})"
    windows = f"{many(grid.windows, 'window')} of {duration(grid.length_ns)}"
    return f"nodes: {', '.join(sizes)}; {windows}{when}; all intervals (±) hold at once with 95 % confidence"


def _effects(title: str, rollout: Rollout, effects: Sequence[Effect], width: int, style: Style) -> list[str]:
    if not effects:
        return []
    columns = [
        Column("cohort", right=False, flexible=True, least=8),
        *(Column("what", right=False, flexible=True, least=24), Column("of it", right=False)),
        *(Column("usual", rank=2), Column("here", rank=3), Column("change")),
        *(Column("node-days", rank=1), Column("nodes")),
    ]
    rows = [
        [
            one.cohort,
            *(one.quantity.series.title, one.quantity.name),
            *(amount(value, one.quantity.unit) for value in (one.usual, one.value)),
            by_how_much(one),
            f"{'-' if one.change < 0 else ''}{days(one)}" if days(one) else "",
            count(one.needed),
        ]
        for one in effects[:ROWS]
    ]
    if len(rollout.others) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
        title = f"{title}  {named(rollout.others[0].value)}"
    rest = more(effects[ROWS:], "other row")
    return as_lines(Section(f"{title}  beside {named(rollout.reference.value)}", columns, rows, rest), width, style)


def _splits(rollout: Rollout, width: int, style: Style) -> list[str]:
    if not rollout.splits:
        return []
    columns = [
        Column("setting", right=False, flexible=True, least=20, tail=True),
        *(Column(title, right=False, flexible=True, least=10) for title in ("cohort", "there", "usual")),
    ]
    rows = [[one.name, cohort, one.value or MISSING, one.usual or MISSING] for cohort, one in rollout.splits]
    title = "WHAT ELSE DIFFERS  any of it may be why"
    return as_lines(Section(title, columns, rows[:ROWS], more(rows[ROWS:], "other row")), width, style)


def _limits(rollout: Rollout, skipped: Sequence[tuple[str, str]]) -> list[str]:
    grid, key = rollout.grid, rollout.key.name
    every = max((node.every for node in grid.nodes), default=1)
    found = [f"so many recordings that one of {every} intervals was read"] if every > 1 else []
    found += [_BY_START] if grid.by_start else []
    if rollout.effects:
        sought = percent(limits.COHORT_SOUGHT - 1)
        found.append(
            "node-days: lost in a week of 1,000 nodes. nodes: so many in each cohort would make a change of "
            f"{sought} sure, four times of five"
        )
    if rollout.small:
        sizes = [f"{named(one.value)} ({many(len(one.units), 'node')})" for one in rollout.small[:_LISTED]]
        rest = f" and {many(len(rollout.small) - _LISTED, 'more cohort')}" if len(rollout.small) > _LISTED else ""
        found.append(
            f"not compared: {', '.join(sizes)}{rest}; a cohort takes {limits.FEWEST_IN_COHORT} nodes, and no more "
            "than the largest nine are"
        )
    if rollout.unlabelled:
        found.append(f"{key} is not known of {_some(rollout.unlabelled)}")
    if rollout.twice:
        found.append(f"in more than one cohort: {_some(rollout.twice)}; intervals are wider than they need to be")
    found += [f"skipped: {path}: {why}" for path, why in (*skipped, *rollout.left_out)]
    return found + [f"{label}: {remark}" for label, remark in rollout.remarks]


def _some(names: Sequence[str]) -> str:
    rest = f" and {count(len(names) - _LISTED)} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{rest}"


def as_dict(rollout: Rollout, skipped: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return everything that the text says, in base units under stable names; ``reports.json.dumps`` makes it safe.

    Keys are added, never renamed or removed. What is not known is null.
    """
    grid = rollout.grid
    return {
        "schema": SCHEMA,
        "verdict": headline(rollout),
        "by": rollout.key.name,
        "rows": list(rollout.key.rows),
        "reference": rollout.reference.value,
        "reference_is": rollout.why,
        "cohorts": {one.value: len(one.units) for one in (rollout.reference, *rollout.others)},
        "not_compared": {one.value: len(one.units) for one in rollout.small},
        "unknown": list(rollout.unlabelled),
        "in_several": list(rollout.twice),
        "confidence": 1 - limits.COHORT_ERROR,
        "windows": grid.windows,
        "window_s": grid.length_ns / 1e9,
        "start_unix_s": grid.unix_ns(0) / 1e9,
        "end_unix_s": grid.unix_ns(grid.windows) / 1e9,
        "aligned_by_start": grid.by_start,
        "effects": [_effect(one) for one in rollout.effects],
        "differences": [
            {"cohort": cohort, "setting": one.name, "value": one.value or None, "reference": one.usual or None}
            for cohort, one in rollout.splits
        ],
        "skipped": [{"file": path, "why": why} for path, why in (*skipped, *rollout.left_out)],
        "remarks": [{"node": label, "remark": remark} for label, remark in rollout.remarks],
    }


def _effect(one: Effect) -> dict[str, Any]:
    scale, unit = (1e9, "s") if one.quantity.unit == "ns" else (1.0, one.quantity.unit)
    return {
        "cohort": one.cohort,
        "series": one.quantity.series.metric,
        "part": one.quantity.series.part,
        "quantity": one.quantity.name,
        "unit": unit,
        "reference": one.usual / scale,
        "value": one.value / scale,
        "change": one.change,
        "low": one.low,
        "high": one.high,
        "different": one.told,
        "node_days_per_week_of_1000": dict(zip(("value", "low", "high"), one.node_days, strict=True)),
        "nodes_needed_for_2_percent": one.needed,
    }
