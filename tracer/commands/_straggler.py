"""The page of a node that deviates, beside nodes that are set up like it and don't."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.commands._gathering import gather
from tracer.commands._output import output
from tracer.compare.comparison import Comparison
from tracer.compare.facts import differences
from tracer.compare.suspect import Detail
from tracer.compare.twins import twins_of
from tracer.reports.html.comparison import comparison_data
from tracer.reports.html.page import page, room

__all__ = ["write_page"]

_TWINS = 3
_MOST_BYTES = 10 << 20


def write_page(path: str, comparison: Comparison, details: Mapping[str, Detail], *, overwrite: bool) -> str:
    """Write the page of the first suspect, or else the first victim, and return its label; "" where there is none.

    Raises OutputError, RecordingError.
    """
    first = next(iter((*comparison.suspects, *comparison.victims)), None)
    if first is None:
        return ""
    twins = twins_of(comparison, first.label, _TWINS)
    left, beside = room(_MOST_BYTES), []
    for label, node in twins:
        found = gather(node.path)
        beside.append(
            found.payload.text(
                left // 2 // len(twins),
                title=label,
                warning=found.warning,
                signs=found.signs,
                differences=[
                    (one.name, one.values[0], one.usual) for one in differences([first.node.facts], [node.facts])
                ],
            )
        )
    found = gather(first.node.path)
    data = found.payload.text(
        left - sum(map(len, beside)),
        title=first.label,
        warning=found.warning,
        signs=found.signs,
        comparison=comparison_data(comparison, details, first),
    )
    with output(path, overwrite=overwrite) as stream:
        stream.write(page(data, f"foreshock: {first.label} beside its twins", beside).encode())
    return first.label
