"""``python -m tests.vm.matrix [KERNEL…]``: what foreshock does on other kernels, in guests, into docs/kernels.md.

Each guest runs doctor, record with every probe beside a workload, and selftest. As root; about five minutes each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench.machine import describe

from .boot import Guest
from .kernels import Missing, cache, fetch
from .matrix_page import page
from .on_kernel import MARK
from .receiver import CHECKOUT

__all__ = ["KERNELS", "keep", "kept", "steps"]

#: Debian's releases by their kernels.
KERNELS = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "7.2": "forky"}
PAGE = CHECKOUT / "docs" / "kernels.md"

_LIMIT_S = 1800.0


def main() -> int:
    """Try the kernels, then write the page from the latest run of each; exit code 1 if a run did not come to its end.

    What a kernel can't do, or does wrong, is on the page.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.vm.matrix", description=main.__doc__)
    parser.add_argument("kernels", nargs="*", choices=[[], *KERNELS], metavar="KERNEL", help=f"of {', '.join(KERNELS)}")
    parser.add_argument("--page", action="store_true", help="write the page from the latest runs, and run nothing")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("matrix: not root", file=sys.stderr)
        return 2
    # A guest must not outlive this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    whole = True
    try:
        for name in () if options.page else options.kernels or KERNELS:
            print(f"matrix: Linux {name}", file=sys.stderr, flush=True)
            found = _run(name)
            keep(name, found)
            whole &= "selftest" in found
    except Missing as missing:
        print(f"matrix: {missing}", file=sys.stderr)
        return 2
    PAGE.write_text(page(kept()))
    return int(not whole)


def steps(lines: list[str]) -> dict[str, Any]:
    """Return what a guest told of each step it came to, by the step's name."""
    found: dict[str, Any] = {}
    for line in lines:
        if line.startswith(MARK):
            found.update(json.loads(line[len(MARK) :]))
    return found


def keep(name: str, found: dict[str, Any]) -> None:
    """Keep a run in place of the kernel's earlier one."""
    _file(name).write_text(json.dumps(found))


def kept() -> dict[str, dict[str, Any]]:
    """Return the latest run of each kernel that has one, from the oldest kernel on."""
    return {name: json.loads(_file(name).read_text()) for name in KERNELS if _file(name).exists()}


def _file(name: str) -> Path:
    folder = cache() / "matrix"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.json"


def _run(name: str) -> dict[str, Any]:
    """Return what a guest with that kernel told, and what it was measured with."""
    facts = dict(describe())
    kernel, began = fetch(KERNELS[name]), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="matrix-", dir=cache()) as folder:
        guest = Guest(kernel, _script(), Path(folder), limit_s=_LIMIT_S)
        with contextlib.closing(guest):
            # A console that nobody reads holds the guest up.
            threading.Thread(target=guest.console.read, daemon=True).start()
            found: dict[str, Any] = {}
            for line in guest.output:
                step = steps([line.decode(errors="replace").strip()])
                found.update(step)
                for told in step:
                    print(f"matrix: after {time.monotonic() - began:.0f} s: {told}", file=sys.stderr, flush=True)
    return {"measured": f"{facts['date']}, foreshock {facts['foreshock']}", **found}


def _script() -> str:
    return "\n".join(
        (
            "umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup",
            "echo +cpu +memory >/sys/fs/cgroup/cgroup.subtree_control",
            f"cd {CHECKOUT} && PYTHONDONTWRITEBYTECODE=1 {sys.executable} -m tests.vm.on_kernel",
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
