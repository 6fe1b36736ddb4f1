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
#: One side is a moment of the other where it is so much shorter. Recordings between which, or in common, is less or
#: more than this share of the shorter are no two times.
MOMENT: Final = 0.5
#: How often a stretch of a side is told to be slower, where the whole is not, though only chance
#: made it; besides, its own intervals have to be beyond the noise.
STRETCH_ERROR: Final = 0.01
#: There the factor has to be this at least.
STRETCH_EFFECT: Final = 1.25
#: More of them are not looked for.
MOST_STRETCHES: Final = 6
#: A gap in a stretch is told where its blocks speak for it by so much (log of how much likelier it is than none).
#: Of 914 simulated stretches without one 6 got one by chance; with 4 it were 26.
CLEAR_GAP: Final = 11.0
#: Shuffles of the blocks in which the clearest stretch is looked for, in pieces of this share of a recording at least.
STRETCHES: Final = 1000
LEAST_PIECE: Final = 1 / 16
#: Blocks that are more alike than this, one and the next, are as good as one.
MOST_MEMORY: Final = 0.9
#: From here on the noise lasts about as long as a side, and its own intervals are too narrow.
LONG_MEMORY: Final = 0.75
#: One recording is taken to be off other times by this share of the variance of its blocks: measured, docs/diff.md.
BETWEEN: Final = 1.0
#: No two recordings of a minute of which nothing was changed were surely further apart (octaves): a factor of 4. So
#: what is, by its own windows' noise, is no other time.
HEALTHY: Final = 2.0
#: Recordings that are shorter (seconds) are further off other times than they can tell, by the root of how much shorter
#: they are: what comes and goes within a minute is in one of 16 s wholly or not at all.
LONG_ENOUGH: Final = 60.0
#: That all measures do so alike is worth so many recordings, beside those that there are.
ALIKE: Final = 4
#: Recordings that are drawn to see how far one more may be from those before.
TIMES: Final = 1000
