"""Names of control groups: by the 64-bit id that BPF programs see, and of a process.

The id is the inode number of the group's directory (kernfs), unique within its hierarchy and never used again
on 64-bit kernels. CPU time is charged to the v1 hierarchy of the cpu controller where there is one, else to v2.
"""

from __future__ import annotations

import os
import re
import time

__all__ = ["CgroupNames", "hierarchy", "subfolders"]

MAX_GROUPS = 16384
_MIN_GAP_SECONDS = 2.0
# A scan of a node with many pods takes a while: rescanning may use a thousandth of a CPU, whatever happens.
_MAX_SHARE = 0.001
_OCTAL = re.compile(rb"\\([0-7]{3})")


class CgroupNames:
    """Paths of cgroups as in /proc/PID/cgroup, remembered after the group is gone. b"" for what isn't known.

    An unknown id makes it look through the hierarchy again, at most once every few seconds. ``is_v1`` says which
    hierarchy that is: v1's of the cpu controller, or v2's. ``proc`` is the folder of processes to read, which
    ``foreign`` pids are not looked up in: they are those of another pid namespace.
    """

    def __init__(self, proc: str = "/proc", max_groups: int = MAX_GROUPS, *, foreign: bool = False) -> None:
        self._foreign = foreign
        self._proc = proc
        self._max_groups = max_groups
        self.is_v1, self._mount, self._root = hierarchy(b"cpu", proc)
        self._names: dict[int, bytes] = {}
        self._next_scan = 0.0
        self.left_out = 0
        """How many groups the last scan found beyond the limit."""

    def cgroup(self, cgroup_id: int, member: int = 0) -> bytes:
        """Return the path of the group with this id; of a new one, where its process ``member`` says."""
        name = self._names.get(cgroup_id)
        if name is None and member and (path := self.cgroup_of(member)) and self.id_of(os.fsdecode(path)) == cgroup_id:
            # Else it is told with its path one time and without it another.
            if len(self._names) < self._max_groups:
                self._names[cgroup_id] = path
            return path
        if name is None and cgroup_id:
            self._scan()
            name = self._names.get(cgroup_id)
        return name or b""

    def cgroup_of(self, pid: int) -> bytes:
        """Return the path of the group that a process is in now."""
        if self._foreign:
            return b""
        try:
            with open(f"{self._proc}/{pid}/cgroup", "rb") as file:
                lines = file.read(65536).splitlines()
        except OSError:
            return b""
        for line in lines:
            _, controllers, path = line.split(b":", 2)
            # v2's line has no controllers.
            if (b"cpu" in controllers.split(b",")) if self.is_v1 else not controllers:
                return path.removesuffix(b" (deleted)")
        return b""

    def id_of(self, path: str) -> int:
        """Return the id of the group with this path, as in /proc/PID/cgroup; 0 when there is none."""
        try:
            return os.stat(self._folder(os.fsencode(path))).st_ino
        except OSError:
            return 0

    def processes(self, path: bytes) -> set[int]:
        """Return the processes of the group with this path, without those below it; none when there is no such one."""
        folder = self._folder(path)
        try:
            with open(os.path.join(folder, b"cgroup.procs"), "rb") as file:
                return {int(line) for line in file}
        except (OSError, ValueError):
            return set()

    def _folder(self, path: bytes) -> bytes:
        """Return where the group with this path is; b"" when it can't be seen from here."""
        below = os.path.relpath(path, self._root) if path.startswith(b"/") else path
        return os.path.join(self._mount, below) if self._mount and below.split(b"/")[0] != b".." else b""

    def _scan(self) -> None:
        began = time.monotonic()
        if began < self._next_scan or not self._mount:
            return
        found: dict[int, bytes] = {}
        self.left_out = 0
        folders = [(self._mount, self._root)]
        while folders:
            folder, name = folders.pop()
            try:
                status = os.stat(folder)
                # kernfs counts subdirectories in the links: a group without any needn't be listed, files and all.
                children = subfolders(folder) if status.st_nlink > 2 else []
            except OSError:
                continue  # removed while we look
            if len(found) < self._max_groups:
                found[status.st_ino] = name or b"/"
            else:
                self.left_out += 1
            folders += [(folder + b"/" + child, name.rstrip(b"/") + b"/" + child) for child in children]
        # Events about groups that are gone still come in: the newest of them are kept, up to the limit.
        gone = [(id, name) for id, name in self._names.items() if id not in found]
        room = max(self._max_groups - len(found), 0)
        self._names = dict(gone[max(len(gone) - room, 0) :]) | found
        now = time.monotonic()
        self._next_scan = now + max(_MIN_GAP_SECONDS, (now - began) / _MAX_SHARE)


def subfolders(folder: bytes) -> list[bytes]:
    """Return the names of the groups in a group's folder. Raises OSError."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def hierarchy(controller: bytes, proc: str = "/proc") -> tuple[bool, bytes, bytes]:
    """Return whether a controller's hierarchy is v1, where it's mounted (b"": nowhere), and the mount's root group."""
    v1: tuple[bytes, bytes] | None = None
    v2: tuple[bytes, bytes] | None = None
    try:
        with open(f"{proc}/self/mountinfo", "rb") as file:
            lines = file.readlines()
    except OSError:
        lines = []
    for line in lines:
        mount, _, source = line.partition(b" - ")
        kind, _, options = source.split(None, 2)
        root, folder = (_OCTAL.sub(lambda code: bytes([int(code[1], 8)]), part) for part in mount.split()[3:5])
        if kind == b"cgroup" and controller in options.strip().split(b",") and v1 is None:
            v1 = folder, root
        elif kind == b"cgroup2" and v2 is None:
            v2 = folder, root
    return (v1 is not None, *(v1 or v2 or (b"", b"")))
