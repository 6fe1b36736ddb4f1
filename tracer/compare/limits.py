"""Where a difference between nodes begins to mean something. The only copy; docs/compare.md explains them."""

from __future__ import annotations

from math import log2
from typing import Final, NamedTuple

#: Below this the median of the others and their scatter are too uncertain: at 4 nodes 7 % of healthy tails would count.
FEW_NODES: Final = 8
#: More than this share of nodes deviating together is no fault of a node: fabric, storage, a phase of the job.
COMMON_SHARE: Final = 0.20
#: A node beyond what they do together by this factor, and by so many of their sigmas, has a fault of its own besides.
OUTSTANDING: Final = 2.0
OUTSTANDING_SIGMAS: Final = 6.0
#: Less than 10 % is not worth a node's exchange, and within what nodes of one kind differ.
EFFECT: Final = 1.10
EFFECT_OF_FEW: Final = 1.25
#: Of what was not recorded more than this may hide such an effect.
UNSEEN: Final = 0.10
#: Nodes of two kinds differ by so much from the start on; what nodes of one kind differ by is some percent.
KINDS: Final = 1.25
#: What all nodes do alike is looked for from so many sigmas on.
COMMON_SCORE: Final = 6.0


class Asked(NamedTuple):
    """Sigmas of what is told.

    Attributes:
        stretch: of a stretch of windows against the node's own baseline.
        clip: by at most so many any window of it counts.
        level: among the nodes, where it lasts from the start.
        alike: all windows of a node may be off together by so many: nodes that differ a little differ otherwise in each
            phase of a job.
    """

    stretch: float
    clip: float
    level: float
    alike: float = 0.0


#: Bursts are neither long nor many: five windows can tell a fault, four can't, and two of five say little.
BULK: Final = Asked(8.0, 5.0, 5.0, 0.2)
TAIL: Final = Asked(8.0, 5.0, 8.0, 0.2)
#: Shares and rates have no bursts of single values. A few nodes don't tell what is usual: a greater effect is asked.
PLAIN: Final = Asked(6.0, 10.0, 5.0)
PLAIN_TAIL: Final = Asked(10.0, 10.0, 8.0)

#: So many sigmas of what nodes are off by on average in the windows of a stretch.
AMONG: Final = 6.5
#: The scores of the other nodes say what is usual here: beyond their median by so many of their own sigmas.
PEER_SIGMAS: Final = 6.0
#: Of a recording's windows, so many deviate where it is said to deviate from the start: a fault may come and go.
LASTING: Final = 0.3
#: Lost per second of wall clock, over all CPUs: what costs less than 100 µs a second makes no straggler.
LEAST_LOST: Final = 1e-4
#: Sigma is never taken to be less (octaves): five of them are 10 %, or 25 % among a few nodes.
BULK_FLOOR: Final = log2(EFFECT) / 5
BULK_FLOOR_OF_FEW: Final = log2(EFFECT_OF_FEW) / 5
#: The same of how many values are beyond a level, where chance alone makes 1 where they are few.
TAIL_FLOOR: Final = 0.05

#: What nodes scatter is skewed, and few of them don't tell it: five beside sixty were told to differ in one of four
#: comparisons in which nothing did.
FEWEST_IN_COHORT: Final = FEW_NODES
#: The share of nodes on either side that may be stragglers, or lucky, without moving their cohort's middle.
TRIMMED: Final = 0.2
#: All intervals together miss a truth this rarely, and a difference that is there is seen so often.
COHORT_ERROR: Final = 0.05
COHORT_POWER: Final = 0.8
#: A difference between cohorts that is worth a rollout's time; and the one for which the nodes needed are told.
COHORT_EFFECT: Final = 1.01
COHORT_SOUGHT: Final = 1.02
