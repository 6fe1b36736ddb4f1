"""What is to be traced, as the command line says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """What to trace, as the command line says it. ``cpus`` is a kernel list such as "0-3,8".

    ``job`` (also a pod's name) and ``rank`` stand for the process or cgroup that they are here, see ``for_job``.
    ``labels`` are kept with the recording.
    ``insist``: probes that are named have to run, else what can run does.
    ``sentinels``, ``keep`` and ``constants`` are the agent's: rings for so many processes, capabilities it needs all
    along, and probes' settings other than their own.
    """

    probes: str = "auto"
    deep: bool = False
    interval_ns: int = 1_000_000_000
    pid: int | None = None
    cgroup: str | None = None
    cpus: str | None = None
    job: str | None = None
    rank: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    sentinels: int = 0
    insist: bool = True
    keep: tuple[str, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def applied(self) -> dict[str, str]:
        """The filters that probes apply, by name."""
        return _given(pid=self.pid, cgroup=self.cgroup, cpus=self.cpus)

    @property
    def filters(self) -> dict[str, str]:
        """The filters in use, by name, and what they stand for."""
        return self.applied | _given(job=self.job, rank=self.rank)


def _given(**values: object) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
