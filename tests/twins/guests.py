"""Twins that are none: recordings made in a guest, of another kernel on another CPU, and by other filters."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from tests.vm.boot import Guest
from tests.vm.kernels import cache, fetch
from tests.vm.receiver import CHECKOUT

from .node import PROBES

__all__ = ["LIMIT_S", "recorded"]

#: From nothing to both recordings. An emulated machine on a busy host is slow.
LIMIT_S = 240.0
_SECONDS = 8
#: Names of nodes, and how each is recorded.
_RECORDED = {"guest": f"--probes {PROBES}", "guest-one-cpu": "--cpus 0"}


def recorded(folder: Path) -> list[Path]:
    """Boot a guest, record in it, and return the recordings: as many as came out in time. Raises Missing."""
    found = []
    kernel = fetch()
    # Below the cache: in the guest, /tmp and /var are others.
    with tempfile.TemporaryDirectory(prefix="twins-", dir=cache()) as name:
        guest = Guest(kernel, "\n".join(_lines()), Path(name), limit_s=LIMIT_S)
        try:
            for line in guest.output:
                word, _, rest = line.decode(errors="replace").partition(" ")
                host, _, data = rest.strip().partition(" ")
                if word == "twin" and host in _RECORDED:
                    found.append(folder / f"{host}.fsk")
                    found[-1].write_bytes(base64.b64decode(data))
        finally:
            guest.close()
    return found


def _lines() -> list[str]:
    record = f"{sys.executable} -m tracer record --quiet --for {_SECONDS}s"
    return [
        f"cd {CHECKOUT}",
        *(
            f"echo {host} >/proc/sys/kernel/hostname; {record} {options} -o /run/{host}.fsk;"
            f" echo twin {host} $(base64 -w0 /run/{host}.fsk)"
            for host, options in _RECORDED.items()
        ),
    ]
