"""FORESHOCK_NO_SKIP: a skipped test is a failure with its reason; an expected failure stays what it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.fixture
def lacking():
    pytest.skip("no such device")

def test_in_a_fixture(lacking): pass

@pytest.mark.skip(reason="marked")
def test_marked(): pass

def test_inside(): pytest.skip("half-way")

@pytest.mark.xfail
def test_expected(): assert False

def test_passes(): pass
"""


@pytest.fixture
def run(checkout: Path, tmp_path: Path):
    shutil.copy(checkout / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")

    def _run(no_skip: str) -> str:
        environment = {**os.environ, "FORESHOCK_NO_SKIP": no_skip}
        command = [sys.executable, "-m", "pytest", "-rf", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    return _run


def test_skips_fail_with_their_reason(run):
    output = run("1")
    assert "1 failed, 1 passed, 1 xfailed, 3 errors" in output
    for reason in ("no such device", "marked", "half-way", "could not import 'no_such_module'"):
        assert reason in output


def test_skips_stay_skips_without_it(run):
    assert "1 passed, 4 skipped, 1 xfailed" in run("")
