"""A flame graph's tree as columns, pruned so that a browser stays quick and every total stays true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tracer.analysis.stacks import Frame

__all__ = ["MOST_NODES", "PRUNED", "Tree", "grown"]

MOST_NODES = 50_000
#: Before pruning; stacks that would make more are pruned below their task.
_MOST_GROWN = 8 * MOST_NODES
PRUNED = Frame(False, "", "[pruned]")


@dataclass(frozen=True)
class Tree:
    """Node 0 is the root, and parents come before their children.

    Attributes:
        parents: u4, shape ``(n,)``. frames: of each node. leaves: the node of each path that was given.
        pruned: how much weight lies in ``[pruned]`` frames.
    """

    parents: np.ndarray
    frames: Sequence[Frame]
    leaves: np.ndarray
    pruned: int


def grown(paths: Iterable[Sequence[Frame]], weights: np.ndarray, most: int = MOST_NODES) -> Tree:
    """Return the tree of ``paths`` (outermost frame first, none empty) with at most ``most`` nodes.

    ``weights`` has the same order. The heaviest nodes are kept; what was below others becomes ``[pruned]`` beside them.
    """
    parents, frames, leaves = [0], [Frame(False, "", "all")], []
    children: dict[tuple[int, Frame], int] = {}

    def child(node: int, frame: Frame) -> int:
        found = children.get((node, frame))
        if found is None:
            found = children[node, frame] = len(parents)
            parents.append(node)
            frames.append(frame)
        return found

    for path in paths:
        node = 0
        for frame in path:
            if len(parents) >= _MOST_GROWN and (node, frame) not in children:
                node = child(node, PRUNED) if frames[node] is not PRUNED else node
                break
            node = child(node, frame)
        leaves.append(node)
    return _pruned(np.array(parents), frames, np.array(leaves, dtype=np.int64), weights, most)


def _pruned(parents: np.ndarray, frames: list[Frame], leaves: np.ndarray, weights: np.ndarray, most: int) -> Tree:
    own = np.zeros(len(parents), np.float64)
    np.add.at(own, leaves, weights.astype(np.float64))
    total = _totals(parents, own)
    total[0] = np.inf
    # A parent weighs at least what its child does and comes first: the heaviest are always a tree.
    order = np.argsort(-total, kind="stable")
    kept = np.sort(order[: _room(parents, order, most)])
    place = np.full(len(parents), -1)
    place[kept] = np.arange(len(kept))
    new_parents, new_frames = [*place[parents[kept]].tolist()], [frames[node] for node in kept.tolist()]
    found = np.array(place)
    pruned_below = {
        parent: node
        for node, (parent, frame) in enumerate(zip(new_parents, new_frames, strict=True))
        if frame is PRUNED
    }
    for node in np.flatnonzero(place < 0).tolist():  # in order: a node's parent has been placed
        parent = int(found[parents[node]])
        if new_frames[parent] is not PRUNED:
            if parent not in pruned_below:
                pruned_below[parent] = len(new_parents)
                new_parents.append(parent)
                new_frames.append(PRUNED)
            parent = pruned_below[parent]
        found[node] = parent
    moved = found[leaves]
    below = np.array([frame is PRUNED for frame in new_frames])
    return Tree(np.array(new_parents, "u4"), new_frames, moved, int(weights[below[moved]].sum()))


def _room(parents: np.ndarray, order: np.ndarray, most: int) -> int:
    """Return how many of the heaviest nodes fit, with a [pruned] node for each that loses a child."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    last_child = rank.copy()
    np.maximum.at(last_child, parents[1:], rank[1:])
    # A node has a [pruned] one when it is among the first n, and its last child is not.
    changes = np.zeros(len(order) + 2, np.int64)
    np.add.at(changes, rank + 1, 1)
    np.add.at(changes, last_child + 1, -1)
    sizes = np.arange(len(order) + 1) + np.cumsum(changes)[: len(order) + 1]
    return max(1, int(np.flatnonzero(sizes <= most)[-1]))


def _totals(parents: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return each node's weight with all below it: children come after their parents."""
    total = own.copy().tolist()
    for node, parent in zip(range(len(parents) - 1, 0, -1), parents[:0:-1].tolist(), strict=True):
        total[parent] += total[node]
    return np.array(total)
