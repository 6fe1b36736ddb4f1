"""A mapped file that can only be reached by its path: another one there is not taken for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Run a program from one file system, then put another over it whose first file has the same inode number.
_SWAP = """
set -e
mount -t tmpfs first "$1" && cp "$(command -v sleep)" "$1/program" && stat -c %i "$1/program"
"$1/program" 60 & pid=$!
sleep 0.2
mount -t tmpfs second "$1" && cp "$(command -v cat)" "$1/program" && stat -c %i "$1/program"
echo $pid; read _ || true; kill $pid
"""

#: Without the capability for map_files, as where only CAP_BPF and CAP_PERFMON are given.
_RESOLVE = """
import sys
from pathlib import Path
from tracer.kernel.privilege import keep_only
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.mappings import Mappings
proc, address = sys.argv[1], int(sys.argv[2], 16)
mapping = Mappings.parse(Path(proc, "maps").read_bytes()).find(address)
keep_only(("dac_read_search", "dac_override", "sys_ptrace"))
Files().resolve(proc, mapping, [address])
"""


def test_another_file_under_the_same_name_and_inode_number_is_refused(tmp_path: Path):
    swap = ["unshare", "--mount", "sh", "-c", _SWAP, "sh", tmp_path]
    with subprocess.Popen(swap, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        first, second, pid = (shell.stdout.readline().strip() for _ in range(3))
        try:
            if first != second:
                pytest.skip("tmpfs gave the two files different inode numbers")
            maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
            start = next(line for line in maps if " r-xp " in line and "/program" in line).partition("-")[0]
            resolve = [sys.executable, "-c", _RESOLVE, f"/proc/{pid}", start]
            done = subprocess.run(resolve, capture_output=True, text=True, cwd=Path(__file__).parents[2])
        finally:
            shell.communicate("\n")
    assert f"FileNotFoundError: {tmp_path}/program" in done.stderr
