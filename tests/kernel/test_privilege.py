"""What is given up stays given up, also for threads and programs started later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.kernel import privilege
from tracer.kernel.loader import syscalls

PROGRAM = """
import subprocess, threading
from pathlib import Path
from tracer.kernel import privilege

def capabilities(text):
    return {line.split()[0]: int(line.split()[1], 16) for line in text.splitlines() if line.startswith("Cap")}

privilege.keep_only((*privilege.KEPT, "sys_admin"))  # twice
found = []
thread = threading.Thread(target=lambda: found.append(Path("/proc/thread-self/status").read_text()))
thread.start()
thread.join()
found.append(Path("/proc/self/status").read_text())
found.append(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout)
kept = sum(1 << privilege._CAPABILITIES[name] for name in (*privilege.KEPT, "sys_admin"))
for text in found:
    caps = capabilities(text)
    assert caps["CapEff:"] & ~kept == 0 and caps["CapPrm:"] & ~kept == 0 and caps["CapBnd:"] & ~kept == 0, text
    assert "NoNewPrivs:\\t1" in text
assert capabilities(found[0])["CapEff:"] & 1 << 21, "sys_admin was to be kept"
print("done")
"""


def test_everything_else_is_given_up() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30)
    assert result.stdout == "done\n", result.stderr


@pytest.mark.parametrize(
    ("action", "needed"), [(lambda: os.close(syscalls.enable_stats()), True), (lambda: os.stat("/proc"), False)]
)
def test_what_takes_privileges_is_found_out_and_none_is_lost(action, needed) -> None:
    before = _held()
    assert privilege.needs(action) is needed
    assert _held() == before


def test_one_of_the_old_capabilities_is_enough_to_trace() -> None:
    program = """
from tracer.kernel import privilege
for kept in (("sys_admin", "perfmon"), ("perfmon",)):
    privilege.keep_only(kept)
    print(sorted(privilege.held()), privilege.may_trace())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == ["['perfmon', 'sys_admin'] True", "['perfmon'] False"], done.stderr


def _held() -> list[str]:
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    return [line for line in lines if line.startswith(("CapPrm", "CapEff", "CapBnd"))]
