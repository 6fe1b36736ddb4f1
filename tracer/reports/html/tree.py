"""A flame graph's tree as columns, pruned so that a browser stays quick and every total stays true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.analysis.order import distinct

__all__ = ["MOST_NODES", "PRUNED", "ROOT", "Tree", "grown"]

MOST_NODES = 50_000
#: What lies deeper is pruned. The kernel takes 127 frames of each kind at most, but a recording may come from anyone.
_DEEPEST = 512
#: Frames that no path has.
ROOT, PRUNED = -1, -2


@dataclass(frozen=True)
class Tree:
    """Node 0 is the root; parents come before their children, and the heaviest nodes first.

    Attributes:
        parents: shape ``(n,)``. frames: of each node, as they were given (right below the root tasks), ROOT or PRUNED.
        leaves: the node of each path that was given. cut: whether that is a ``[pruned]`` one, shape ``(paths,)``.
    """

    parents: np.ndarray
    frames: np.ndarray
    leaves: np.ndarray
    cut: np.ndarray


def grown(
    tasks: np.ndarray,
    frames: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    weights: np.ndarray,
    most: int = MOST_NODES,
) -> Tree:
    """Return the tree of paths with at most ``most`` nodes.

    A path is a task and a part of ``frames``, outermost first: where that begins, its length, its weight.
    Tasks and frames are numbers from 0 on.
    The heaviest nodes are kept; what was below others becomes ``[pruned]`` beside them.
    """
    total = np.array([np.inf])
    levels = [np.array([[0, ROOT]])]
    node, going = np.zeros(len(tasks), np.int64), np.arange(len(tasks))
    many = 1 + int(max(tasks.max(initial=0), frames.max(initial=0)))
    for depth in range(_DEEPEST):
        if not len(going):
            break
        keys = node[going] * many + (frames[starts[going] + depth - 1] if depth else tasks)
        first, which = distinct(keys)
        levels.append(np.stack(np.divmod(keys[first], many), axis=1))
        node[going] = len(total) + which
        added = np.bincount(which, weights[going])
        goes_on = _among_heaviest(total, added, most)[which]
        total = np.concatenate([total, added])
        going = going[goes_on & (lengths[going] > depth)]
    parents, names = np.concatenate(levels).T
    deeper = np.zeros(len(tasks), bool)
    deeper[going] = True
    return _pruned(parents, names, total, node, deeper, most)


def _among_heaviest(total: np.ndarray, added: np.ndarray, most: int) -> np.ndarray:
    """Return which of the nodes added may be among the ``most`` heaviest in the end, older ones first among equals."""
    excess = len(total) + len(added) - most
    if excess <= 0:
        return np.ones(len(added), bool)
    least = np.partition(np.concatenate([total, added]), excess)[excess]
    equal = added == least
    room = most - np.count_nonzero(total >= least) - np.count_nonzero(added > least)
    heaviest: np.ndarray = (added > least) | (equal & (np.cumsum(equal) <= room))
    return heaviest


def _pruned(
    parents: np.ndarray,
    frames: np.ndarray,
    total: np.ndarray,
    leaves: np.ndarray,
    deeper: np.ndarray,
    most: int,
) -> Tree:
    """Keep the heaviest nodes. Paths that are ``deeper`` than their leaf end in a ``[pruned]`` frame as well."""
    # A parent weighs at least what its child does and comes first: the heaviest are always a tree.
    order = np.argsort(-total, kind="stable")
    kept = order[: _room(parents, order, leaves[deeper], most)]
    place = np.full(len(parents), -1)
    place[kept] = np.arange(len(kept))
    above = np.where(place < 0, parents, np.arange(len(parents)))
    while (higher := above[above]).tolist() != above.tolist():
        above = higher
    leaves_kept = place[above[leaves]]
    cut = deeper | (place[leaves] < 0)
    first, which = distinct(leaves_kept[cut])
    moved = leaves_kept.copy()
    moved[cut] = len(kept) + which
    return Tree(
        np.concatenate([place[parents[kept]], leaves_kept[cut][first]]).astype("u4"),
        np.concatenate([frames[kept], np.full(len(first), PRUNED)]),
        moved,
        cut,
    )


def _room(parents: np.ndarray, order: np.ndarray, deeper: np.ndarray, most: int) -> int:
    """Return how many of the heaviest nodes fit, with a [pruned] node for each that loses a child."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    last_child = rank.copy()
    np.maximum.at(last_child, parents[1:], rank[1:])
    last_child[deeper] = len(order)
    # A node has a [pruned] one when it is among the first n, and its last child is not.
    changes = np.zeros(len(order) + 2, np.int64)
    np.add.at(changes, rank + 1, 1)
    np.add.at(changes, last_child + 1, -1)
    sizes = np.arange(len(order) + 1) + np.cumsum(changes)[: len(order) + 1]
    return max(1, int(np.flatnonzero(sizes <= most)[-1]))
