"""What is committed is what the sources make, byte for byte, and the sources have no type error."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)


def test_the_committed_assets_are_those_of_the_sources(checkout: Path, npm, tmp_path: Path):
    npm("run", "check")
    npm("run", "build", "--", str(tmp_path))
    committed = checkout / "tracer/reports/html/assets"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in committed.iterdir()} - {"report.html"}
    for name in names:
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes(), f"{name} is stale: run 'make web'"
