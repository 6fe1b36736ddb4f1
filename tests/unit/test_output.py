"""Files that commands write: whole, new, and never in the place of what is something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.commands._output import output, refuse_existing
from tracer.compare.reading import read_nodes
from tracer.errors import OutputError


def written(path: Path, *, overwrite: bool) -> bytes:
    refuse_existing(str(path), overwrite)
    with output(str(path), overwrite=overwrite) as stream:
        stream.write(b"new")
    return path.read_bytes()


def test_a_file_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert written(path, overwrite=False) == b"new"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match="exists"):
        written(path, overwrite=False)
    assert path.read_bytes() == b"old"
    assert written(path, overwrite=True) == b"new"


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_plain_file_stays_what_it_is(tmp_path: Path, kind: str, overwrite: bool) -> None:
    path, target = tmp_path / "there", tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    if kind == "link":
        target.write_bytes(b"old")
    before = os.lstat(path)
    with pytest.raises(OutputError, match="no plain file"):
        written(path, overwrite=overwrite)
    assert os.lstat(path).st_ino == before.st_ino
    assert target.exists() == (kind == "link") and (kind != "link" or target.read_bytes() == b"old")


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    path, other = tmp_path / "node.fsk", tmp_path / "same.fsk"
    path.write_bytes(b"a recording")
    os.link(path, other)
    with pytest.raises(OutputError, match="is what is read"):
        refuse_existing(str(other), True, ["-", str(tmp_path / "gone"), str(path)])


def test_a_pipe_among_many_recordings_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.fsk")
    nodes, skipped = read_nodes([str(tmp_path / "pipe.fsk")])
    assert nodes == [] and "no plain file" in skipped[0].why
