"""Which recordings can be compared with each other, what their nodes are called, and what not all of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os.path import basename

from tracer.compare.metrics import METRICS, Series
from tracer.compare.node import Node

__all__ = ["comparable", "labels", "of_one_cpu", "partly", "without_copies"]

_ASKED = frozenset({"job", "rank"})
_CPU = "cpu / model"
# Source: HOST_NAME_MAX of limits.h.
_LONGEST = 64


def without_copies(nodes: Sequence[Node]) -> tuple[list[Node], list[tuple[str, str]]]:
    """Return the longest recording of each node and time, and the others with the reason."""
    left_out: list[tuple[str, str]] = []
    kept: list[Node] = []
    for node in sorted(nodes, key=lambda one: one.start_ns - one.end_ns):  # the longest first
        twin = next((one for one in kept if _same_recording(one, node)), None)
        if twin is not None:
            left_out.append((node.path, f"it is of the same node and time as {basename(twin.path)}"))
        else:
            kept.append(node)
    order = {id(node): place for place, node in enumerate(nodes)}
    return sorted(kept, key=lambda node: order[id(node)]), left_out


def comparable(nodes: Sequence[Node]) -> tuple[list[Node], list[tuple[str, str]]]:
    """Return the nodes that can be compared, and the others with the reason."""
    left_out: list[tuple[str, str]] = []
    kept = [*nodes]
    for what, of in (("architecture", _architecture), ("filter", _filters)):
        usual = Counter(of(node) for node in kept).most_common(1)
        for node in kept if usual else []:
            if of(node) != usual[0][0]:
                left_out.append((node.path, f"its {what} is {of(node)}, most others' {usual[0][0]}"))
        kept = [node for node in kept if of(node) == usual[0][0]] if usual else kept
    return kept, left_out


def of_one_cpu(nodes: Sequence[Node]) -> tuple[list[Node], list[tuple[str, str]]]:
    """Return the nodes with the CPU that most have, and the others with the reason: they are no faster or slower twins.

    Where a recording doesn't say, it is taken to be like most.
    """
    known = [cpu for node in nodes if (cpu := node.facts.get(_CPU))]
    usual = Counter(known).most_common(1)[0][0] if known else ""
    others = [node for node in nodes if node.facts.get(_CPU, usual) != usual]
    left_out = [(node.path, f"its CPU is {node.facts[_CPU]}, most others' {usual}") for node in others]
    return [node for node in nodes if node not in others], left_out


def _same_recording(one: Node, other: Node) -> bool:
    ours, theirs = one.source, other.source
    same = ours.boot_id == theirs.boot_id if ours.boot_id or theirs.boot_id else ours.host == theirs.host
    return same and ours.host == theirs.host and one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _architecture(node: Node) -> str:
    return node.source.architecture or "unknown"


def _filters(node: Node) -> str:
    given = dict(node.source.filters)
    if given.keys() & _ASKED:
        # A job is another process, or cgroup, on every node, and its ranks are what is compared.
        given = {name: value for name, value in given.items() if name not in ("pid", "cgroup", "rank")}
        given.setdefault("job", "of a rank")
    return ", ".join(f"{name} {value}" for name, value in given.items()) or "none"


def labels(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return hosts' names; where two recordings are of one host, or of an unknown one, with the file's name.

    Of what is no host's name, for its length, the beginning.
    """
    names = [_shortened(node.source.host) for node in nodes]
    hosts = Counter(names)
    return tuple(
        name if name and hosts[name] == 1 else f"{name or 'unknown host'} ({basename(node.path)})"
        for name, node in zip(names, nodes, strict=True)
    )


def _shortened(host: str) -> str:
    return host if len(host) <= _LONGEST else f"{host[: _LONGEST - 1]}…"


def partly(nodes: Sequence[Node]) -> tuple[tuple[str, int], ...]:
    """Return (title, how many nodes have it) of metrics that not all nodes recorded.

    A kind of interrupt that did not come is no such thing.
    """
    having = {name: sum(any(one.metric == name for one in node.series) for node in nodes) for name in METRICS}
    return tuple((Series(name).title, number) for name, number in having.items() if 0 < number < len(nodes))
