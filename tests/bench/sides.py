"""The two sides of a comparison while they run: the distribution's bcc programs, and foreshock."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .headers import header_tree
from .machine import CHECKOUT, FIRST_CPU, command, folder
from .objects import owned

__all__ = ["foreshock", "tools"]

#: bcc looks for tracepoints in tracefs. Mounted for the program alone: nothing stays behind.
_WITH_TRACEFS = 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"'
_UNSHARED = ["unshare", "--mount", "sh", "-c", _WITH_TRACEFS, "sh"]

#: foreshock's own look at its cost lasts one second, and must not fall into a measurement.
_OWN_ACCOUNTING_SECONDS = 1.3


@contextlib.contextmanager
def tools(commands: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """Run bcc's programs meanwhile, each with its arguments, unchanged; yields the ids of their BPF programs."""
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(_tool(*command)) for command in commands]
        yield [number for pid in pids for number in sorted(owned(pid)["prog"])]


@contextlib.contextmanager
def _tool(name: str, *arguments: str) -> Iterator[int]:
    path = command(f"{name}-bpfcc", "bpfcc-tools", "to compare with")
    call = ["taskset", "-c", str(FIRST_CPU), *_UNSHARED, "/usr/bin/python3", "-u", path, *arguments, "1"]
    environment = {**os.environ, "BCC_KERNEL_SOURCE": str(header_tree())}
    log = folder() / f"{name}.log"
    with (
        log.open("w") as output,
        _stopped(subprocess.Popen(call, env=environment, stdout=output, stderr=output)) as process,
    ):
        _wait_for(lambda: "Tracing" in log.read_text(), process, log)
        # Its first interval's output is not part of what is measured.
        time.sleep(0.3)
        yield process.pid


@contextlib.contextmanager
def foreshock(probes: str) -> Iterator[list[int]]:
    """Record with these probes meanwhile, once a second; yields the ids of its BPF programs."""
    with recording(probes) as process:
        time.sleep(_OWN_ACCOUNTING_SECONDS)
        yield sorted(owned(process.pid)["prog"])


@contextlib.contextmanager
def recording(
    probes: str = "auto", *, cpu: int | None = FIRST_CPU, interval: str = "1s"
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``foreshock record`` meanwhile, as a user would; yields it when it has attached."""
    file = folder() / "bench.fsk"
    call = [sys.executable, "-m", "tracer", "record", "--quiet", "--overwrite", "--interval", interval]
    call += ["--probes", probes, "-o", str(file)]
    if cpu is not None:
        call = ["taskset", "-c", str(cpu), *call]
    log = folder() / "foreshock.log"
    file.unlink(missing_ok=True)
    with (
        log.open("w") as output,
        _stopped(subprocess.Popen(call, cwd=CHECKOUT, stdout=output, stderr=output)) as process,
    ):
        _wait_for(lambda: file.exists() and file.stat().st_size > 0, process, log)
        yield process


@contextlib.contextmanager
def _stopped(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(ready: object, process: subprocess.Popen[bytes], log: Path) -> None:
    assert callable(ready)
    deadline = time.monotonic() + 30
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start: {log.read_text()[-2000:]}")
        time.sleep(0.02)
