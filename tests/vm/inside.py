"""``python -m tests.vm.inside SUITE [TEST…]``: run the kernel's tests in a guest, by another kernel and cgroup v2.

Without tests it is those of the ledger. As root; a guest is emulated, so this takes minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
import threading
from pathlib import Path

from .boot import Guest
from .kernels import Missing, cache, fetch
from .receiver import CHECKOUT

__all__ = ["main"]

#: What tells sleeps apart can't be tried here, where all files are on a network file system.
_TESTS = ["tests/kernel/test_ledger.py", "tests/kernel/test_ledger_softirq.py"]
#: Nothing is written in the checkout, which is this machine's.
_PYTEST = "-p no:cacheprovider -p no:hypothesispytest -v --reruns 0 --timeout 600"
_LIMIT_S = 1800.0
_PASSED = "inside: passed"


def main() -> int:
    """Run them, with their output as it comes; exit code 1 if not all pass."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm.inside", description=main.__doc__)
    parser.add_argument("suite", help="Debian's release whose kernel it is: bullseye (5.10), bookworm (6.1), forky, …")
    parser.add_argument("tests", nargs="*", default=_TESTS, help="as pytest has them (default: the ledger's)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("inside: not root", file=sys.stderr)
        return 2
    passed = False
    try:
        kernel = fetch(options.suite)
        with tempfile.TemporaryDirectory(prefix="inside-", dir=cache()) as name:
            guest = Guest(kernel, _script(options.tests), Path(name), limit_s=_LIMIT_S)
            with contextlib.closing(guest):
                # A console that nobody reads holds the guest up.
                threading.Thread(target=guest.console.read, daemon=True).start()
                for line in guest.output:
                    text = line.decode(errors="replace").rstrip()
                    passed |= text == _PASSED
                    print(text, flush=True)
    except Missing as missing:
        print(f"inside: {missing}", file=sys.stderr)
        return 2
    return int(not passed)


def _script(tests: list[str]) -> str:
    run = f"{sys.executable} -m pytest {_PYTEST} {' '.join(map(shlex.quote, tests))}"
    return "\n".join(
        (
            f"cd {CHECKOUT}; uname -r",
            "umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup",
            "echo +cpu +memory >/sys/fs/cgroup/cgroup.subtree_control",
            f"{run} 2>&1 && echo {_PASSED}",
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
