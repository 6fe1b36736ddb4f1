"""The fingerprint flattened, and the rows of it in which a node differs from its twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LABEL", "Difference", "Split", "differences", "flattened", "split"]

#: What comes before the name of a label that the user gave.
LABEL = "label"

_MOST_FACTS = 4096
_LONGEST = 200
_DEPTH = 6
# Counters and clocks: they differ because time passes.
_MOVING = ("clocks", "host", "unread", "kernel / boot_id")
# Of all twins, so many must agree before a node that doesn't is worth a row.
_AGREEING = 0.8


@dataclass(frozen=True)
class Difference:
    """One row of the fingerprint: its name, the suspects' values, the twins' value and how many of them have it."""

    name: str
    values: tuple[str, ...]
    usual: str
    having: int
    of: int


@dataclass(frozen=True)
class Split:
    """One row of the fingerprint in which two groups of nodes differ as a whole: its name and either's value."""

    name: str
    value: str
    usual: str


def flattened(header: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint in a recording's header as one text per path of names. It may hold anything."""
    found: dict[str, str] = {}
    fingerprint = header.get("fingerprint")
    parts = {"cpus": header.get("cpus"), "foreshock": header.get("version"), LABEL: header.get("labels")}
    for source in (parts, fingerprint if isinstance(fingerprint, Mapping) else {}):
        for path, value in _leaves(source, ()):
            if len(found) >= _MOST_FACTS:
                return found
            if not path.startswith(_MOVING):
                found[path] = value
    return found


def differences(suspects: Sequence[Mapping[str, str]], twins: Sequence[Mapping[str, str]]) -> list[Difference]:
    """Return the rows in which a suspect has another value than nearly all its twins. A row that is missing is "–"."""
    rows = []
    for name in sorted({name for facts in (*suspects, *twins) for name in facts}):
        values = tuple(facts.get(name, "") for facts in suspects)
        counted = Counter(facts.get(name, "") for facts in twins)
        usual, having = counted.most_common(1)[0] if counted else ("", 0)
        if having and having >= _AGREEING * len(twins) and any(value != usual for value in values):
            rows.append(Difference(name, values, usual, having, len(twins)))
    return rows


def split(ours: Sequence[Mapping[str, str]], theirs: Sequence[Mapping[str, str]]) -> list[Split]:
    """Return the rows in which nearly all of either group agree, and the groups don't. What is missing is ""."""
    rows = []
    for name in sorted({name for facts in (*ours, *theirs) for name in facts}):
        value, usual = (_agreed([facts.get(name, "") for facts in group]) for group in (ours, theirs))
        if None not in (value, usual) and value != usual:
            rows.append(Split(name, value or "", usual or ""))
    return rows


def _agreed(values: Sequence[str]) -> str | None:
    """Return the value that nearly all have; None when there is no such one."""
    value, having = Counter(values).most_common(1)[0] if values else ("", 0)
    return value if having and having >= _AGREEING * len(values) else None


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and len(path) < _DEPTH:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)[:_LONGEST]))
    elif isinstance(value, (list, tuple)) and any(isinstance(one, (list, tuple)) for one in value):
        for inner in value:
            yield from _named(inner, path)
    elif value is not None:
        yield " / ".join(path), _told(value)


def _named(row: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """A row of a table, such as an interrupt line: its first two values name it."""
    if isinstance(row, (list, tuple)) and len(row) > 2:
        yield " / ".join((*path, f"{row[0]} {row[1]}"[:_LONGEST])), _told(list(row[2:]))


def _told(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))[:_LONGEST]
    return str(value)[:_LONGEST]
