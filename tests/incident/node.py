"""Two pods of a node: packets flow from one to the other, whose interrupts are the last CPU's."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles

__all__ = ["ADDRESSES", "FAR", "NEAR", "inside", "node", "spread", "steer"]

NEAR, FAR = "foreshock-train", "foreshock-infer"
ADDRESSES = {NEAR: "10.77.0.1", FAR: "10.77.0.2"}
_FIRST_NETWORK = 80
_HERE = Path(__file__).parent


@contextlib.contextmanager
def node(cpu: int, networks: int = 12) -> Iterator[int]:
    """Make the pods, and neighbours of the first one, in networks of 250 times 250 addresses; yields how many.

    Softirqs of what arrives run on ``cpu``.
    """
    with contextlib.ExitStack() as stack:
        for name in (NEAR, FAR):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
        _ip("link", "add", "eth0", "netns", NEAR, "type", "veth", "peer", "name", "eth0", "netns", FAR)
        for name, address in ADDRESSES.items():
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
        steer(cpu)
        numbers = range(_FIRST_NETWORK, _FIRST_NETWORK + networks)
        lines = [
            f"neighbour replace 10.{network}.{high}.{low} lladdr 02:00:00:{network:02x}:{high:02x}:{low:02x} "
            "dev eth0 nud permanent"
            for network in numbers
            for high in range(250)
            for low in range(250)
        ]
        for network in numbers:
            _ip("-n", NEAR, "route", "add", f"10.{network}.0.0/16", "dev", "eth0")
        _ip("-n", NEAR, "-batch", "-", text="\n".join(lines))
        yield len(lines)


def steer(cpu: int) -> None:
    """Have softirqs of what arrives from now on run on ``cpu``."""
    steered = "/sys/class/net/eth0/queues/rx-0/rps_cpus"  # ip mounts the pod's own /sys
    _ip("netns", "exec", FAR, "sh", "-c", f"echo {1 << cpu:x} > {steered}")


@contextlib.contextmanager
def inside(pod: str, part: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run one of ``parts`` in a pod meanwhile, or where the pod is ``""`` on the node; its end is waited for."""
    enter = ["ip", "netns", "exec", pod] if pod else []
    call = [*enter, sys.executable, str(_HERE / "parts.py"), part, *map(str, arguments)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=os.environ)
    try:
        yield process
    finally:
        process.terminate()
        # What nobody reads it would wait to tell.
        process.communicate()


def spread(seconds: Sequence[float]) -> str:
    """Return how long some things took, of which there are two at least, in words."""
    p50, p99 = (1e3 * quantiles(seconds, n=100)[place] for place in (49, 98))
    return f"{p50:.2f} ms at p50, {p99:.2f} at p99, {1e3 * max(seconds):.1f} at most"


def _ip(*arguments: str, text: str = "") -> None:
    call: Sequence[str] = ["ip", *arguments]
    subprocess.run(call, input=text, text=True, check=True)
