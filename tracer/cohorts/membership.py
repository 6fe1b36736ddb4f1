"""Which cohort a node belongs to: by a label, or by what its fingerprint says of a key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from tracer.compare.facts import LABEL
from tracer.compare.node import Node
from tracer.errors import UsageError

__all__ = ["Cohort", "Key", "chosen", "find_key", "grouped"]

_SEPARATOR: Final = " / "
#: Short names of what people ask for; the rest is asked for by the last names of its path.
_ALIASES: Final[Mapping[str, str]] = {
    "kernel": r"kernel / release",
    "driver": r"network / cards / [^/]+ / (?:driver|version)",
    "firmware": r"network / cards / [^/]+ / firmware\w*",
}
_SHOWN, _LONGEST = 6, 32


@dataclass(frozen=True)
class Key:
    """What nodes are grouped by: as the user said it, and the rows of the fingerprint that hold it."""

    name: str
    rows: tuple[str, ...]

    def value(self, facts: Mapping[str, str]) -> str:
        """Return what a node's fingerprint says: several rows' values once each; "" when it says nothing."""
        return ", ".join(dict.fromkeys(filter(None, (facts.get(row, "") for row in self.rows))))


@dataclass(frozen=True)
class Cohort:
    """Nodes of one ``value``: ``units`` are their places, those of one host together."""

    value: str
    units: tuple[tuple[int, ...], ...]


def find_key(wanted: str, nodes: Sequence[Node]) -> Key:
    """Return the key that the user asked for: a label, then ``kernel``, ``driver`` or ``firmware``, then any row of the
    fingerprint by its path or the last names of it. Raises UsageError when no recording has it.
    """
    rows = list(dict.fromkeys(row for node in nodes for row in node.facts))
    name = wanted.strip()
    label = f"{LABEL}{_SEPARATOR}{name.removeprefix('label:')}"
    if label in rows:
        return Key(name, (label,))
    found = _rows(name, rows)
    if found:
        return Key(name, tuple(found))
    prefix = f"{LABEL}{_SEPARATOR}"
    known = [row.removeprefix(prefix) for row in rows if row.startswith(prefix)]
    known += [alias for alias in _ALIASES if _rows(alias, rows)]
    near = get_close_matches(name, [*known, *(row.rpartition(_SEPARATOR)[2] for row in rows)], 1)
    question = f"did you mean {_short(near[0])}? " if near else ""
    there = f"there are {', '.join(map(_short, known[:_SHOWN]))} and every row of the fingerprint; " if known else ""
    raise UsageError(
        f"--by {_short(wanted)}: no recording says that of its node.",
        hint=f"{question}{there}record --label NAME=VALUE adds what it can't know",
    )


def _rows(name: str, rows: Sequence[str]) -> list[str]:
    """Return the rows of the fingerprint that a name means."""
    if name in _ALIASES:
        return [row for row in rows if re.fullmatch(_ALIASES[name], row)]
    return [row for row in rows if name and (row == name or row.endswith(f"{_SEPARATOR}{name}"))]


def grouped(key: Key, nodes: Sequence[Node]) -> tuple[list[Cohort], list[int]]:
    """Return the cohorts, the largest first, and the places of nodes of which nothing is known.

    Of equal ones the lower version is first: a new one is held against the old. Recordings of one host are one node:
    what is measured twice is not twice as sure.
    """
    members: dict[str, dict[str, list[int]]] = {}
    unknown = []
    for place, node in enumerate(nodes):
        value = key.value(node.facts)
        if not value:
            unknown.append(place)
            continue
        members.setdefault(value, {}).setdefault(node.source.host or f"\0{node.path}", []).append(place)
    cohorts = [Cohort(value, tuple(map(tuple, hosts.values()))) for value, hosts in members.items()]
    return sorted(cohorts, key=lambda one: (-len(one.units), _version(one.value))), unknown


def chosen(wanted: str, key: Key, cohorts: Sequence[Cohort]) -> Cohort:
    """Return the cohort of that value. Raises UsageError when there is none."""
    if found := next((one for one in cohorts if one.value == wanted.strip()), None):
        return found
    near = get_close_matches(wanted, [one.value for one in cohorts], 1)
    question = f"did you mean {_short(near[0])}? " if near else ""
    there = ", ".join(map(_short, (one.value for one in cohorts[:_SHOWN])))
    there += f" and {len(cohorts) - _SHOWN} more" if len(cohorts) > _SHOWN else ""
    raise UsageError(
        f"--reference {_short(wanted)}: no node that can be compared has that {key.name}.",
        hint=f"{question}there {'is' if len(cohorts) == 1 else 'are'} {there or 'none'}",
    )


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"


def _version(value: str) -> list[tuple[int, str]]:
    """Return what puts 6.9 before 6.10: numbers in names count as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"\d{1,18}|\D+", value, re.ASCII)
    ]
