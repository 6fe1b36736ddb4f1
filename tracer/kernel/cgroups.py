"""Names of control groups: by the 64-bit id that BPF programs see, and of a process.

The id is the inode number of the group's directory (kernfs), unique within its hierarchy and never used again
on 64-bit kernels. CPU time is charged to the v1 hierarchy of the cpu controller where there is one, else to v2. Where
both are mounted (a hybrid node), who is in v1's root is told by v2's group: services and pods may be there only.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress

__all__ = ["CgroupNames", "hierarchy", "subfolders"]

MAX_GROUPS = 16384
_MIN_GAP_SECONDS = 2.0
# A scan of a node with many pods takes a while: rescanning may use a thousandth of a CPU, whatever happens.
_MAX_SHARE = 0.001
#: Tells ids of v2's groups from v1's where both are there; a bit that no id has.
_OF_V2 = 1 << 62
_OCTAL = re.compile(rb"\\([0-7]{3})")


class CgroupNames:
    """Paths of cgroups as in /proc/PID/cgroup, remembered after the group is gone. b"" for what isn't known.

    An unknown id makes it look through the hierarchy again, at most once every few seconds. ``is_v1`` says which
    hierarchy that is: v1's of the cpu controller, or v2's; ``constants`` say it to the programs, and whether the other
    one is there as well. ``trees`` has of each a bit of its ids, its mount and the mount's root group. ``proc`` is the
    folder of processes to read, which ``foreign`` pids are not looked up in: they are those of another pid namespace.
    """

    def __init__(self, proc: str = "/proc", max_groups: int = MAX_GROUPS, *, foreign: bool = False) -> None:
        self._foreign = foreign
        self._proc = proc
        self._max_groups = max_groups
        self.is_v1, mount, root = hierarchy(b"cpu", proc)
        beside = _mounted(b"", proc) if self.is_v1 else None
        self.constants = {"CGROUP_V1": 1} if self.is_v1 else {}
        self.trees = [(0, mount, root)] if mount else []
        if beside:
            self.constants["CGROUP_OF_V2"] = _OF_V2
            self.trees.append((_OF_V2, *beside))
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
        found = {}
        for line in lines:
            _, controllers, path = line.split(b":", 2)
            for controller in controllers.split(b","):
                found[controller] = path.removesuffix(b" (deleted)")
        # v2's line has no controllers.
        path = found.get(b"cpu" if self.is_v1 else b"", b"")
        return found.get(b"", path) if len(self.trees) > 1 and path == b"/" else path

    def id_of(self, path: str) -> int:
        """Return the id of the group with this path, as in /proc/PID/cgroup; 0 when there is none."""
        return self._place(os.fsencode(path))[0]

    def processes(self, path: bytes) -> set[int]:
        """Return the processes of the group with this path, without those below it; none when there is no such one."""
        try:
            with open(os.path.join(self._place(path)[1], b"cgroup.procs"), "rb") as file:
                return {int(line) for line in file}
        except (OSError, ValueError):
            return set()

    def _place(self, path: bytes) -> tuple[int, bytes]:
        """Return the id of the group with this path and its folder; 0 and b"" when it can't be seen from here."""
        # Who is in the root is in both.
        for tag, mount, root in reversed(self.trees) if path == b"/" else self.trees:
            below = os.path.relpath(path, root) if path.startswith(b"/") else path
            folder = os.path.join(mount, below)
            with suppress(OSError):
                if below.split(b"/")[0] != b"..":
                    return tag | os.stat(folder).st_ino, folder
        return 0, b""

    def _scan(self) -> None:
        began = time.monotonic()
        if began < self._next_scan or not self.trees:
            return
        found: dict[int, bytes] = {}
        self.left_out = 0
        folders = self.trees[::-1]
        while folders:
            tag, folder, name = folders.pop()
            try:
                status = os.stat(folder)
                # kernfs counts subdirectories in the links: a group without any needn't be listed, files and all.
                children = subfolders(folder) if status.st_nlink > 2 else []
            except OSError:
                continue  # removed while we look
            if len(found) < self._max_groups:
                found[tag | status.st_ino] = name or b"/"
            else:
                self.left_out += 1
            folders += [(tag, folder + b"/" + child, name.rstrip(b"/") + b"/" + child) for child in children]
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
    v1, v2 = _mounted(controller, proc), _mounted(b"", proc)
    return (v1 is not None, *(v1 or v2 or (b"", b"")))


def _mounted(controller: bytes, proc: str) -> tuple[bytes, bytes] | None:
    """Return where v1's hierarchy of a controller is mounted, and with which root group; of none v2's."""
    try:
        with open(f"{proc}/self/mountinfo", "rb") as file:
            lines = file.readlines()
    except OSError:
        lines = []
    for line in lines:
        mount, _, source = line.partition(b" - ")
        kind, _, options = source.split(None, 2)
        root, folder = (_OCTAL.sub(lambda code: bytes([int(code[1], 8)]), part) for part in mount.split()[3:5])
        if (kind == b"cgroup" and controller in options.strip().split(b",")) if controller else kind == b"cgroup2":
            return folder, root
    return None
