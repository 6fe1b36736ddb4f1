"""The loader's process imports our package, whatever else goes by that name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tracer.kernel import child


def test_another_package_called_loader_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "loader").mkdir()
    (tmp_path / "loader/__init__.py").write_text("raise SystemExit('not ours')\n")
    started = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + child._START.replace("main()", "print(main)")
    folder = Path(child.__file__).with_name("loader")
    done = subprocess.run([sys.executable, "-I", "-c", started, folder], capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("<function main"), done.stderr


def test_a_loader_started_early_works_where_this_process_may_run_by_then() -> None:
    allowed = os.sched_getaffinity(0)
    child.start_early(sys.executable)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        with child.take(sys.executable) as early:
            early.give({})
            assert os.sched_getaffinity(early._process.pid) == {min(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_loader_that_nobody_took_ends_with_its_process_even_if_it_stands_still() -> None:
    lines = (
        "import os, signal, sys",
        "from tracer.kernel import child",
        "child.start_early(sys.executable)",
        "pid = child._early[0]._process.pid",
        "os.kill(pid, signal.SIGSTOP)",  # before it has asked to die with its parent
        "print(pid)",
    )
    checkout = Path(child.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=checkout, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert not Path(f"/proc/{int(done.stdout)}").exists()
