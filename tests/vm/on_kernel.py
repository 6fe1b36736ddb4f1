"""What foreshock does on the kernel it runs on, as a line of JSON per step; run in a guest by ``tests.vm.matrix``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tracer.kernel.loader.btf import Btf
from tracer.recording import read_recording

from .reads import differences, lacks

__all__ = ["MARK"]

#: What each line begins with.
MARK = "on-kernel: "
_RECORDING = Path("/run/on-kernel.fsk")
#: Attaching takes an emulated machine beside others longer than a node may need; so does what workloads do.
_PATIENT = """
import tracer.commands, tracer.kernel.session, tracer.workloads._process
tracer.kernel.session.ATTACH_SECONDS = tracer.workloads._process._GRACE_SECONDS = 600.0
tracer.commands.main()
"""
#: Processes, files, switches: something to see.
_WORKLOAD = "while :; do ls /usr/bin | sort | wc -l; sleep 0.2; done"


def main() -> None:
    """Run every step: one that fails is told with its last words, and the others run all the same."""
    btf = Btf.running_kernel()
    _tell("kernel", os.uname().release)
    _tell("differs", list(differences(btf)))
    _tell("lacks", list(lacks(btf)))
    _tell("doctor", _run("doctor", "--json"))
    workload = subprocess.Popen(["sh", "-c", _WORKLOAD], stdout=subprocess.DEVNULL)
    try:
        _tell("record", _run("record", "--deep", "--for", "8s", "--quiet", "-o", str(_RECORDING)))
    finally:
        workload.kill()
        workload.wait()
    if _RECORDING.exists():
        _tell("recorded", _recorded())
    _tell("selftest", _run("selftest", "--json"))


def _tell(step: str, what: Any) -> None:
    print(MARK + json.dumps({step: what}), flush=True)


def _run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", _PATIENT, *arguments], capture_output=True, text=True)
    answer: dict[str, Any] = {"code": done.returncode, "words": done.stderr.strip()[-800:]}
    if done.stdout.startswith("{"):
        answer["answer"] = json.loads(done.stdout)
    return answer


def _recorded() -> dict[str, Any]:
    """Return which probes attached, which did not and why, what they do without, and the rows of each table."""
    recording = read_recording(_RECORDING)
    rows: dict[str, int] = {}
    for window in (window for windows in recording.intervals for window in windows):
        name = f"{window.probe}.{window.table}"
        rows[name] = rows.get(name, 0) + len(window.rows)
    header = recording.header
    return {
        "probes": [probe["name"] for probe in header["probes"]],
        "refused": header["refused"],
        "missing": header["missing"],
        "rows": rows,
        "intervals": len(recording.intervals),
    }


if __name__ == "__main__":
    main()
