"""What the parts of the benchmark hand back, and the page made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Check", "Section", "table"]


@dataclass(frozen=True)
class Check:
    """A measured figure beside its target. ``met`` None: shown for comparison, no target of its own."""

    what: str
    measured: str
    target: str
    met: bool | None


@dataclass
class Section:
    """One part's results: checks for the table at the top of the page, Markdown blocks for the part itself."""

    title: str
    blocks: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; columns after the first are aligned right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def checks_table(checks: Sequence[Check]) -> str:
    """Return the table of figures and targets."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    return table(
        ("what", "measured", "target", "met"),
        [(check.what, check.measured, check.target, verdicts[check.met]) for check in checks],
    )
