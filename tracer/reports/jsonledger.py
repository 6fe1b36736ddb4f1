"""The ledger for programs: whose time was taken, and by whom."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from tracer.analysis.ledger import Account, accounts
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary

__all__ = ["ledger_entries"]


def ledger_entries(summary: Summary, source: Source) -> list[dict[str, Any]]:
    """Return an entry per process, those that lost most first; times that the machine does not show are None."""
    times = summary.table("ledger", "time")
    return [_account(one, times.columns) for one in accounts(summary, source)] if times else []


def _account(account: Account, seen: Set[str]) -> dict[str, Any]:
    return {
        "pid": account.pid or None,
        "comm": account.comm,
        "cgroup": account.cgroup,
        "threads": account.threads,
        "lost": account.lost,
        "cause": account.cause,
        "waits": account.times["waits"],
        **{
            f"{name.removesuffix('_ns')}_s": ns / 1e9 if name in seen else None
            for name, ns in account.times.items()
            if name != "waits"
        },
        "taken": [{"what": one.what, "cause": one.cause, "seconds": one.ns / 1e9} for one in account.taken],
    }
