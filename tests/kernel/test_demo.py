"""demo: it finds the hog it ran, and leaves nothing behind however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.kernel.loader.syscalls import _bpf

PROG_GET_FD_BY_ID = 13
PHASE = re.compile(r"demo: +(\d+) s")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    checkout = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-m", "tracer", "demo", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": checkout},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a foreground group of its own, as in a terminal
    )


def descendants(pid: int) -> set[int]:
    """Return the processes below ``pid``, and theirs."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def network(pid: int | str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def programs(pid: int) -> set[int]:
    """Return the ids of the BPF programs that a process holds."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        found |= {int(number) for number in re.findall(r"^prog_id:\t(\d+)$", path.read_text(), re.M)}
    return found


def is_loaded(program: int) -> bool:
    attr = bytearray(16)
    attr[0:4] = program.to_bytes(4, "little")
    try:
        os.close(_bpf(PROG_GET_FD_BY_ID, attr))
    except FileNotFoundError:
        return False
    return True


def wait_until(holds, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def phases(process: subprocess.Popen[str]) -> Iterator[int]:
    for line in process.stderr:
        if match := PHASE.match(line):
            yield int(match[1])


def test_names_the_hog_that_it_ran(tmp_path):
    demo = start(tmp_path, "--for", "8s", "-o", "demo.fsk")
    output, progress = demo.communicate(timeout=60)
    assert demo.returncode == 0, progress
    assert [int(second) for second in PHASE.findall(progress)] == sorted(int(s) for s in PHASE.findall(progress))
    (pid,) = re.findall(r"a hog: pid (\d+) takes CPU", progress)
    assert f"hog[{pid}]" in output.partition("Within normal:")[0]
    assert "This recording is demo.fsk" in output
    assert output.index("VERDICT") < output.index("RUN QUEUE")
    assert all(len(line) <= 80 for line in (output + progress).splitlines())
    command = [sys.executable, "-m", "tracer", "summary", "--json", str(tmp_path / "demo.fsk")]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["verdict"]["findings"]
    culprits = [finding["values"] for finding in found if finding["rule"] == "runqueue.wait"]
    assert ("hog", int(pid)) in [(one.get("holder_comm"), one.get("holder_pid")) for one in culprits]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_leaves_nothing_behind(number, tmp_path):
    demo = start(tmp_path, "-o", "demo.fsk")
    next(phases(demo))
    time.sleep(2)
    children = descendants(demo.pid)
    namespaces = {network(pid) for pid in children} - {network("self")}
    attached = programs(demo.pid)
    assert len(children) >= 4 and len(namespaces) == 2 and attached
    os.killpg(demo.pid, number)
    output, _ = demo.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert demo.returncode == -number
    else:
        assert demo.returncode == 0 and "VERDICT" in output
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    assert wait_until(lambda: not any(map(is_loaded, attached)))
    assert not namespaces & {network(path.name) for path in Path("/proc").glob("[0-9]*")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.fsk"]
