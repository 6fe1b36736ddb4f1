"""Which nodes to look at beside one that deviates."""

from __future__ import annotations

from tracer.compare.comparison import Comparison
from tracer.compare.node import Node

__all__ = ["twins_of"]


def twins_of(comparison: Comparison, label: str, most: int) -> list[tuple[str, Node]]:
    """Return labels and nodes that don't deviate, at most ``most``: those set up most like the one called ``label``."""
    nodes = dict(zip(comparison.labels, comparison.grid.nodes, strict=True))
    accused = {one.label for one in (*comparison.suspects, *comparison.victims)}
    facts = nodes[label].facts.items()
    alike = [(-len(facts & node.facts.items()), name) for name, node in nodes.items() if name not in accused]
    return [(name, nodes[name]) for _, name in sorted(alike)[:most]]
