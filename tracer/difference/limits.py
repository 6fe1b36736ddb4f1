"""Where a difference between two recordings begins to mean something. The only copy; docs/diff.md explains them."""

from __future__ import annotations

from typing import Final

#: A side is cut into so many blocks of time, one after the other, each of several windows where there are enough.
BLOCKS: Final = 10
#: Fewer don't tell how much they scatter.
LEAST_BLOCKS: Final = 5
#: How often at least one of all intervals misses, where nothing changed.
ERROR: Final = 0.02
#: Pairs of sides that are made of shuffled blocks: 2 % of them are forty.
SHUFFLES: Final = 2000
#: Added to both sides of a ratio, being too little to matter: events a second, and seconds a second of one CPU.
LEAST_RATE: Final = 1.0
LEAST_TIME: Final = 1e-3
#: One side is a moment of the other where it is so much shorter.
MOMENT: Final = 0.5
#: Ends of a side that are looked at by themselves, as shares of it, where the whole is not slower.
ENDS: Final = (0.5, 0.25)
#: There the factor has to be this at least, and so many times as great as its uncertainty.
LATE_EFFECT: Final = 1.25
LATE_CARE: Final = 1.25
#: Blocks that are more alike than this, one and the next, are as good as one.
MOST_MEMORY: Final = 0.9
#: From here on the noise lasts about as long as a side, and its own intervals are too narrow.
LONG_MEMORY: Final = 0.75
