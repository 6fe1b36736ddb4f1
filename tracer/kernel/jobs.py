"""Which job, step and rank, which pod and container a process belongs to: by its cgroups and a few variables.

An environment holds secrets: of it only the variables named here are ever kept. Both may have been written by anyone.
Sources: srun(1) "OUTPUT ENVIRONMENT VARIABLES"; torch.distributed.run; Open MPI's and PMI's launchers; the kubelet's
and the container runtimes' cgroup names; slurm's cgroup/v1 and cgroup/v2 plugins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MOST_BYTES", "UNKNOWN", "Labels", "chosen", "labels"]

#: Of an environment so much is read, and of a variable so much kept.
MOST_BYTES = 128 << 10
_MOST_VALUE = 64
#: A number that isn't known.
UNKNOWN = -1

_JOBS = (b"SLURM_JOB_ID", b"SLURM_JOBID", b"PBS_JOBID", b"LSB_JOBID", b"TORCHELASTIC_RUN_ID")
_STEPS = (b"SLURM_STEP_ID", b"SLURM_STEPID")
_NODES = (b"SLURM_NODEID",)
_PODS = (b"POD_NAME", b"HOSTNAME")
_NAMESPACES = (b"POD_NAMESPACE",)
# Rank, rank on this node, how many: what starts the ranks on a node comes before what started itself there.
_RANKS = (
    (b"RANK", b"LOCAL_RANK", b"WORLD_SIZE"),
    (b"OMPI_COMM_WORLD_RANK", b"OMPI_COMM_WORLD_LOCAL_RANK", b"OMPI_COMM_WORLD_SIZE"),
    (b"PMI_RANK", b"MPI_LOCALRANKID", b"PMI_SIZE"),
    (b"SLURM_PROCID", b"SLURM_LOCALID", b"SLURM_NTASKS"),
)
_VARIABLES = frozenset((*_JOBS, *_STEPS, *_NODES, *_PODS, *_NAMESPACES, *(name for names in _RANKS for name in names)))

_SLURM_JOB = re.compile(rb"/job_(\d{1,20})(?:/|$)")
_SLURM_STEP = re.compile(rb"/step_(\w{1,15})(?:/|$)")
_POD = re.compile(rb"(?:/|-)pod([0-9a-f]{8}[-_][0-9a-f_-]{27}|[0-9a-f]{32})(?:\.slice|/|:|$)")
# Of a container its runtime's scope, or the kubelet's and docker's bare 64 digits.
_CONTAINER = re.compile(rb"(?:[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_SHORT_ID = 12
_NUMBER = re.compile(rb"\d{1,9}")


@dataclass(frozen=True)
class Labels:
    """What a process belongs to; b"" and ``UNKNOWN`` where that isn't known.

    ``pod`` is its name, or its uid where no variable says the name; ``container`` the first 12 digits of its id.
    """

    job: bytes = b""
    step: bytes = b""
    rank: int = UNKNOWN
    local_rank: int = UNKNOWN
    world_size: int = UNKNOWN
    node: int = UNKNOWN
    pod: bytes = b""
    namespace: bytes = b""
    container: bytes = b""


def chosen(environ: bytes) -> bytes:
    """Return those of an environment's variables that are named here, as /proc/PID/environ writes them."""
    found: dict[bytes, bytes] = {}
    for item in environ.split(b"\0"):
        name, equals, value = item.partition(b"=")
        if equals and name in _VARIABLES:
            found.setdefault(name, value[:_MOST_VALUE])
    return b"\0".join(name + b"=" + value for name, value in found.items())


def labels(variables: bytes, cgroups: Sequence[bytes]) -> Labels:
    """Return what a process belongs to, by ``chosen`` variables and the paths of all its cgroups.

    A job by its cgroup, which a user can't change, rather than by a variable, which anyone may set.
    """
    named = {name: value for name, _, value in (item.partition(b"=") for item in variables.split(b"\0"))}
    job, step = _match(_SLURM_JOB, cgroups), _match(_SLURM_STEP, cgroups)
    pod = _match(_POD, cgroups)
    rank, local_rank, world_size = _ranks(named)
    return Labels(
        job=job or _first(named, _JOBS).replace(b"none", b""),
        step=step or _first(named, _STEPS),
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        node=_number(_first(named, _NODES)),
        # Anywhere else HOSTNAME is a shell's.
        pod=(_first(named, _PODS) or pod) if pod else named.get(_PODS[0], b""),
        namespace=_first(named, _NAMESPACES),
        container=_match(_CONTAINER, cgroups)[:_SHORT_ID],
    )


def _ranks(named: dict[bytes, bytes]) -> tuple[int, int, int]:
    for rank, local_rank, world_size in _RANKS:
        # Alone, RANK may be anybody's word.
        if _number(named.get(rank, b"")) != UNKNOWN and _number(named.get(world_size, b"")) != UNKNOWN:
            return tuple(_number(named.get(name, b"")) for name in (rank, local_rank, world_size))  # type: ignore[return-value]
    return UNKNOWN, UNKNOWN, UNKNOWN


def _first(named: dict[bytes, bytes], names: Sequence[bytes]) -> bytes:
    return next((named[name] for name in names if named.get(name)), b"")


def _number(value: bytes) -> int:
    return int(value) if _NUMBER.fullmatch(value) else UNKNOWN


def _match(pattern: re.Pattern[bytes], paths: Sequence[bytes]) -> bytes:
    # The last in a path: a container of a job may have a hierarchy of its own.
    return next((found[-1] for path in paths if (found := pattern.findall(path))), b"")
