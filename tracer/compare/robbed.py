"""Who took the ranks' time on one node, and not on others set up like it: two ledgers beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from tracer.analysis.ledger import accounts
from tracer.analysis.summary import Summary
from tracer.analysis.taken import Cause as Kind
from tracer.compare.metrics import Cause
from tracer.units import percent

__all__ = ["taken"]

#: Whom the ledger names that may be meant by a class of cause.
_KINDS: dict[Cause, tuple[Kind, ...]] = {
    "scheduler": ("neighbour", "overcommitted", "own", "other"),
    "quota": ("quota",),
    "softirq": ("interrupts",),
    "interrupts": ("interrupts",),
    "memory": ("memory",),
}


def taken(cause: Cause, summary: Summary, peers: Sequence[Summary]) -> str:
    """Return who took most of the ranks' time beyond what it took on ``peers``, with both shares; "" if nobody did.

    The words may hold unescaped names from the node.
    """
    ours, theirs = _shares(cause, summary), [_shares(cause, one) for one in peers]
    usual = {what: median(one[what] for one in theirs) if theirs else 0.0 for what in ours}
    who = max(ours, key=lambda what: ours[what] - usual[what], default="")
    if not who or ours[who] <= usual[who]:
        return ""
    beside = f", on its peers {percent(usual[who])}" if theirs else ""
    return f"{who} took {percent(ours[who])} of the ranks' time{beside}"


def _shares(cause: Cause, summary: Summary) -> Counter[str]:
    """Return which share of the ranks' time each took."""
    found: Counter[str] = Counter()
    whole_ns = 0
    for account in accounts(summary, summary.source):
        if summary.source.jobs.of(account.pid):
            whole_ns += account.base_ns
            for one in account.taken:
                if one.cause in _KINDS.get(cause, ()):
                    found[one.what] += one.ns
    return Counter({what: ns / whole_ns for what, ns in found.items()}) if whole_ns else Counter()
