"""Who had a CPU during the beginnings of long waits, from the blocks of bpf/ledger.h."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.layouts import constants

__all__ = ["Interrupted", "LongWaits", "Share"]

_KNOWN = constants("ledger")
_OLDS, _BLOCKS = _KNOWN["LEDGER_OLDS"], _KNOWN["LEDGER_LOG_BLOCKS"]


@dataclass(frozen=True)
class Share:
    """What of one process's waits a holder had; a holder without a name (``holder`` -1) is not known."""

    tgid: int
    holder: int
    comm: bytes
    cgroup_id: int
    ns: int


@dataclass(frozen=True)
class Interrupted:
    """What of one process's waits interrupts had, of the softirqs mostly those of ``vector``."""

    tgid: int
    vector: int
    softirq_ns: int
    hardirq_ns: int


class LongWaits:
    """Reads what programs left over since the last time, from live rows: per CPU, its blocks and its olds."""

    def __init__(self, cpus: np.ndarray, blocks: np.ndarray, olds: np.ndarray) -> None:
        self._cpus = cpus
        self._blocks = blocks.reshape(len(cpus), _BLOCKS)
        self._olds = olds.reshape(len(cpus), _OLDS)
        self._counts = cpus["olds_count"].copy()
        self._lengths = cpus["olds_ns"].copy()

    def take(self, now_ns: int) -> tuple[list[Share], list[Interrupted], int]:
        """Return shares, what softirqs and hard interrupts had, and the ns of waits that were lost."""
        shares: list[Share] = []
        interrupts: list[Interrupted] = []
        lost_ns = 0
        blocks: dict[int, np.ndarray] = {}
        for cpu, (count, before) in enumerate(
            zip(self._cpus["olds_count"].tolist(), self._counts.tolist(), strict=True)
        ):
            new = min((count - before) & 0xFFFFFFFF, _OLDS)
            places = [(count - 1 - back) % _OLDS for back in range(new)]
            olds = self._olds[cpu][places]
            length_ns = int(self._cpus["olds_ns"][cpu])
            lost_ns += max(length_ns - int(self._lengths[cpu]) - int((olds["end_ns"] - olds["start_ns"]).sum()), 0)
            self._counts[cpu], self._lengths[cpu] = count, length_ns
            for start_ns, end_ns, tgid, where in olds.tolist():
                if where < len(self._cpus) and where not in blocks:
                    blocks[where] = self._log(where)
                found, interrupted = _shared_out(blocks.get(where, _NO_LOG), start_ns, end_ns, tgid, now_ns)
                shares += found
                interrupts += interrupted
        return shares, interrupts, lost_ns

    def _log(self, cpu: int) -> np.ndarray:
        """Return a CPU's blocks, oldest first."""
        newest = int(self._cpus["blocks_count"][cpu])
        blocks: np.ndarray = self._blocks[cpu][(newest + 1 + np.arange(_BLOCKS)) % _BLOCKS]
        used: np.ndarray = blocks[blocks["started_ns"] > 0]
        return used


_NO_LOG = np.zeros(0, [("started_ns", "u8")])


def _shared_out(
    blocks: np.ndarray, start_ns: int, end_ns: int, tgid: int, now_ns: int
) -> tuple[list[Share], list[Interrupted]]:
    """Share out a time among those in the blocks that it touches, each as if they had taken turns all the time."""
    shares: list[Share] = []
    starts = blocks["started_ns"].astype("i8")
    ends = np.append(starts[1:], now_ns)
    overlaps = np.minimum(ends, end_ns) - np.maximum(starts, start_ns)
    interrupts: list[Interrupted] = []
    covered_ns = 0
    for at in np.flatnonzero(overlaps > 0).tolist():
        overlap, block = int(overlaps[at]), blocks[at]
        soft, hard = _interrupts(blocks, at)
        parts = [part for part in block["parts"].tolist() if part[3]]
        own_ns = sum(part[0] for part in parts) + int(block["other_ns"])
        whole_ns = max(own_ns + soft + hard, 1)
        if soft or hard:
            ns = overlap * soft // whole_ns, overlap * hard // whole_ns
            interrupts.append(Interrupted(tgid, int(block["vector"]), *ns))
        covered_ns += overlap
        shares += [Share(tgid, holder, comm, group, overlap * ns // whole_ns) for ns, group, holder, _, comm in parts]
        shares.append(Share(tgid, -1, b"", 0, overlap * int(block["other_ns"]) // whole_ns))
    shares.append(Share(tgid, -1, b"", 0, max(end_ns - start_ns - covered_ns, 0)))
    return [share for share in shares if share.ns], interrupts


def _interrupts(blocks: np.ndarray, at: int) -> tuple[int, int]:
    """Return what softirqs and hard interrupts had of a block; of the last one, which goes on, nothing is known yet."""
    if at + 1 == len(blocks):
        return 0, 0
    return tuple(max(int(blocks[name][at + 1]) - int(blocks[name][at]), 0) for name in ("softirq_ns", "hardirq_ns"))  # type: ignore[return-value]
