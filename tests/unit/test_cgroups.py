"""Which hierarchy is read, and cgroup lines of processes, from made-up /proc folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.kernel.cgroups import CgroupNames

V1 = "30 20 0:27 / {mount} rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
CPUSET = "31 20 0:28 / /nowhere rw - cgroup cgroup rw,cpuset\n"
V2 = "33 20 0:29 {root} {mount} rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A folder that looks like a hierarchy, with a space in its name as mountinfo escapes it."""
    base = tmp_path / "the groups"
    (base / "system.slice/a.service").mkdir(parents=True)
    (base / "kubepods").mkdir()
    (base / "cgroup.procs").write_text("")
    return base


def make(tmp_path: Path, mountinfo: str, cgroup: str = "") -> CgroupNames:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(mountinfo)
    (proc / "7").mkdir()
    (proc / "7/cgroup").write_text(cgroup)
    return CgroupNames(str(proc))


def mounted(line: str, groups: Path, root: str = "/") -> str:
    return line.format(mount=str(groups).replace(" ", "\\040"), root=root)


def test_v1_is_read_where_the_cpu_controller_is(tmp_path: Path, groups: Path) -> None:
    lines = "5:cpuset:/elsewhere\n4:cpu,cpuacct:/system.slice/a.service\n0::/unified\n"
    names = make(tmp_path, mounted(V2, tmp_path) + CPUSET + mounted(V1, groups), lines)
    assert names.is_v1
    assert names.cgroup_of(7) == b"/system.slice/a.service"
    assert names.cgroup((groups / "system.slice/a.service").stat().st_ino) == b"/system.slice/a.service"
    assert names.cgroup(groups.stat().st_ino) == b"/"


def test_who_is_in_none_of_v1s_groups_is_told_by_v2s(tmp_path: Path, groups: Path) -> None:
    unified = tmp_path / "unified"
    (unified / "pods/one").mkdir(parents=True)
    names = make(tmp_path, V2.format(mount=unified, root="/") + mounted(V1, groups), "4:cpu:/\n0::/pods/one\n")
    both = names.constants["CGROUP_OF_V2"]
    assert names.constants["CGROUP_V1"] == 1 and names.cgroup_of(7) == b"/pods/one"
    inode = (unified / "pods/one").stat().st_ino
    assert names.id_of("/pods/one") == inode | both and names.cgroup(inode | both, member=7) == b"/pods/one"
    assert names.cgroup((unified / "pods").stat().st_ino | both) == b"/pods"
    # The same inode may be another group's there.
    assert names.cgroup((groups / "kubepods").stat().st_ino) == b"/kubepods"
    assert names.id_of("/kubepods") == (groups / "kubepods").stat().st_ino
    # Programs take nobody for v1's root.
    assert names.id_of("/") == unified.stat().st_ino | both and names.cgroup(names.id_of("/")) == b"/"


def test_v2_is_read_otherwise(tmp_path: Path, groups: Path) -> None:
    names = make(tmp_path, CPUSET + mounted(V2, groups), "5:cpuset:/elsewhere\n0::/kubepods (deleted)\n")
    assert not names.is_v1
    assert names.cgroup_of(7) == b"/kubepods"
    assert names.cgroup((groups / "kubepods").stat().st_ino) == b"/kubepods"


def test_paths_begin_at_the_hierarchys_root_not_at_the_mounts(tmp_path: Path, groups: Path) -> None:
    names = make(tmp_path, mounted(V2, groups, root="/machine/me"))
    inode = (groups / "kubepods").stat().st_ino
    assert names.cgroup(inode) == b"/machine/me/kubepods"
    assert names.id_of("/machine/me/kubepods") == inode
    assert names.id_of("/machine/other") == names.id_of("/machine/me/none") == 0


def test_nothing_is_known_without_a_hierarchy_or_a_process(tmp_path: Path) -> None:
    names = make(tmp_path, "")
    assert names.cgroup(5) == names.cgroup_of(7) == names.cgroup_of(8) == b""
    assert names.id_of("/a") == 0


def test_a_miss_looks_again_only_after_a_while(tmp_path: Path, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    names = make(tmp_path, mounted(V2, groups))
    names.cgroup(groups.stat().st_ino)
    (groups / "late").mkdir()
    inode = (groups / "late").stat().st_ino
    assert names.cgroup(inode) == names.cgroup(inode, member=7) == b""
    now += 2.1
    assert names.cgroup(inode) == b"/late"


def test_groups_that_are_gone_keep_their_names_within_the_limit(
    tmp_path: Path, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    names = make(tmp_path, mounted(V2, groups))
    names._max_groups = 4
    inode = (groups / "kubepods").stat().st_ino
    assert names.cgroup(inode) == b"/kubepods" and names.left_out == 0
    (groups / "kubepods").rename(tmp_path / "gone")  # keeps the inode from being used again
    now += 10
    names.cgroup(1)
    assert names.cgroup(inode) == b"/kubepods"
    (groups / "a").mkdir()
    (groups / "b").mkdir()
    now += 10
    names.cgroup(1)
    assert names.cgroup(inode) == b"" and names.left_out == 1


def test_a_new_group_is_known_by_its_process(tmp_path: Path, groups: Path) -> None:
    names = make(tmp_path, mounted(V2, groups), "0::/late\n")
    names.cgroup(groups.stat().st_ino)
    (groups / "late").mkdir()
    inode = (groups / "late").stat().st_ino
    assert names.cgroup(inode) == b""
    assert names.cgroup(inode, member=7) == names.cgroup(inode) == b"/late"
