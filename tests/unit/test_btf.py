"""The reader of BTF: on a small one made here, whose answers are known, and on the running kernel's against bpftool."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tracer.kernel.loader.btf import Btf
from tracer.probe import Member, Tracepoint
from tracer.probes import all_probes

VMLINUX = Path("/sys/kernel/btf/vmlinux")


class Made:
    """Writes BTF, type by type; Documentation/bpf/btf.rst."""

    def __init__(self) -> None:
        self.names = b"\0"
        self.types = b""
        self.count = 0

    def name(self, text: str) -> int:
        if not text:
            return 0
        self.names += text.encode() + b"\0"
        return len(self.names) - len(text) - 1

    def add(self, kind: int, name: str, size_or_type: int, *more: int, vlen: int = 0, flag: int = 0) -> int:
        info = flag << 31 | kind << 24 | vlen
        self.types += struct.pack(f"<III{len(more)}I", self.name(name), info, size_or_type, *more)
        self.count += 1
        return self.count

    def integer(self, name: str, size: int) -> int:
        return self.add(1, name, size, size * 8)

    def composite(self, kind: int, name: str, size: int, members: list[tuple[str, int, int]], flag: int = 0) -> int:
        words = [word for member, type_id, bits in members for word in (self.name(member), type_id, bits)]
        return self.add(kind, name, size, *words, vlen=len(members), flag=flag)

    def data(self) -> bytes:
        header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types), len(self.names))
        return header + self.types + self.names


@pytest.fixture
def small() -> Btf:
    made = Made()
    number = made.integer("int", 4)
    flag = made.integer("_Bool", 1)
    made.name("xtask")  # whose tail is a name as well, and comes first
    inner = made.composite(4, "inner", 8, [("first", number, 0), ("second", number, 32)])
    alias = made.add(8, "inner_t", inner)
    constant = made.add(10, "", alias)
    union = made.composite(5, "", 8, [("whole", number, 0), ("part", inner, 0)])
    # A bitfield's member carries its width in the upper byte.
    members = [("a", number, 0), ("", union, 64), ("c", constant, 128), ("bit", number, 1 << 24 | 195)]
    task = made.composite(4, "task", 32, members, flag=1)
    pointer = made.add(2, "", made.add(10, "", task))
    void = made.add(2, "", 0)
    made.add(6, "kinds", 4, made.name("ZERO"), 0, made.name("SEVEN"), 7, vlen=2)
    prototype = made.add(13, "", 0, 0, void, 0, flag, 0, pointer, 0, number, vlen=4)
    made.add(8, "btf_trace_event", made.add(2, "", prototype))
    return Btf(made.data())


def test_members_are_found_through_typedefs_and_unnamed_unions(small: Btf):
    offsets = {"task.a": 0, "task.whole": 8, "task.part.second": 12, "task.c": 16, "task.c.second": 20}
    assert {path: small.member_offset(path) for path in offsets} == offsets


@pytest.mark.parametrize("path", ["task.none", "none.a", "task.a.b", "task.bit", "ask.a", "tas.a", "inner_t.first"])
def test_what_is_not_there_is_none(small: Btf, path: str):
    assert small.member_offset(path) is None


def test_a_bitfield_is_found_by_its_bit(small: Btf):
    assert (small.bit_offset("task.bit"), small.bit_offset("task.c"), small.bit_offset("task.none")) == (195, 128, None)


def test_sizes_are_those_of_the_members_types(small: Btf):
    sizes = {"task.a": 4, "task.part": 8, "task.c": 8, "task.bit": 4, "task": 32}
    assert {path: small.member_size(path) for path in sizes} == sizes
    assert small.member_size("task.none") is None


def test_enumerators(small: Btf):
    assert small.enum_value("kinds", "SEVEN") == 7
    assert small.enum_value("kinds", "EIGHT") is None
    assert small.enum_value("sorts", "SEVEN") is None


def test_tracepoint_arguments_are_spelled_as_in_c_without_const(small: Btf):
    found = small.tracepoint("event")
    assert found is not None
    assert found[1] == ["_Bool", "struct task *", "int"]
    assert small.tracepoint("none") is None


def test_unknown_kinds_end_the_reading_not_the_use():
    made = Made()
    number = made.integer("int", 4)
    made.composite(4, "known", 4, [("a", number, 0)])
    made.add(31, "unheard_of", 0, 1, 2, 3)
    btf = Btf(made.data())
    assert btf.member_offset("known.a") == 0


@pytest.mark.parametrize("data", [b"\x9f\xeb" + bytes(30), b"\xeb\x9f" + bytes(22)])
def test_other_data_is_refused_or_empty(data: bytes):
    try:
        btf = Btf(data)
    except ValueError:
        return
    assert btf.member_offset("task_struct.pid") is None


@cache
def dumped() -> list[dict[str, Any]]:
    """Return the running kernel's types as bpftool reads them; the index is the id less one."""
    bpftool = shutil.which("bpftool", path=os.environ["PATH"] + ":/usr/sbin")
    if not bpftool:
        pytest.skip("no bpftool (Debian: bpftool)")
    done = subprocess.run([bpftool, "-j", "btf", "dump", "file", str(VMLINUX)], check=True, capture_output=True)
    types: list[dict[str, Any]] = json.loads(done.stdout)["types"]
    return types


@pytest.fixture(scope="module")
def kernel() -> Btf:
    if not VMLINUX.exists():
        pytest.skip(f"no {VMLINUX}: this kernel was built without BTF")
    return Btf.running_kernel()


def test_every_member_of_some_structs_is_where_bpftool_sees_it(kernel: Btf):
    wanted = {"task_struct", "net_device", "sk_buff", "rq", "cfs_rq", "irq_desc", "mm_struct", "cgroup", "page"}
    seen = {}
    for entry in dumped():
        if entry["kind"] == "STRUCT" and entry["name"] in wanted:
            seen.setdefault(entry["name"], entry)
    assert len(seen) > 5
    for name, entry in seen.items():
        for member in entry["members"]:
            if member["name"] != "(anon)":
                bits = member["bits_offset"]
                expected = None if bits % 8 else bits // 8
                assert kernel.member_offset(f"{name}.{member['name']}") == expected, (name, member)


def test_sizes_of_pointers_arrays_and_numbers(kernel: Btf):
    sizes = {"task_struct.comm": 16, "task_struct.stack": 8, "task_struct.pid": 4, "task_struct.prio": 4}
    assert {path: kernel.member_size(path) for path in sizes} == sizes


def test_all_tracepoints_have_the_ids_that_bpftool_gives(kernel: Btf):
    known = {
        entry["name"].removeprefix("btf_trace_"): entry["id"]
        for entry in reversed(dumped())
        if entry["kind"] == "TYPEDEF" and entry["name"].startswith("btf_trace_")
    }
    assert len(known) > 500
    for event, type_id in known.items():
        found = kernel.tracepoint(event)
        assert found is not None and found[0] == type_id, event


def test_what_the_probes_ask_for_is_found(kernel: Btf):
    for probe in all_probes().values():
        for member in probe.members:
            assert isinstance(member, Member)
            if not member.optional:
                paths = (member.path, *member.otherwise)
                assert any(kernel.member_offset(path) is not None for path in paths), paths
        for hook in probe.hooks:
            if isinstance(hook, Tracepoint) and not hook.optional:
                found = kernel.tracepoint(hook.event)
                assert found is not None, hook
                assert tuple(found[1][: len(hook.args)]) == hook.args
