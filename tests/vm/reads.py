"""What the BPF programs read of the kernel's structs, by the width of each read, beside the kernel's own types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from tracer.kernel.loader.btf import Btf
from tracer.layouts import bpf_folder
from tracer.probe import Member, Tracepoint
from tracer.probes import all_probes

__all__ = ["differences", "lacks", "reads"]

#: ``read_kernel(POINTER, TYPE, MEMBER)``, where POINTER may be calls of three levels. ``MEMBER + 8`` is a part of one.
_CALL = r"(?:[^(),;]|\((?:[^();]|\((?:[^();]|\([^();]*\))*\))*\))*"
_READ = re.compile(rf"read_kernel\({_CALL},\s*([\w ]+\*?),\s*([A-Z0-9]\w+)( \+)?")
#: A byte or an int, by the kernel's own size.
_SMALL = re.compile(r"read_small\(\w+, ([A-Z]\w+)\)")
_BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "void *": 8}


@cache
def reads() -> Mapping[str, set[int]]:
    """Return the sizes in bytes with which the programs read whole members, by the members' constants."""
    found: dict[str, set[int]] = {}
    for file in sorted(bpf_folder().glob("*.bpf.[ch]")):
        for kind, macro, part in _READ.findall(file.read_text()):
            if not part and kind in _BYTES:
                found.setdefault(macro, set()).add(_BYTES[kind])
        for macro in _SMALL.findall(file.read_text()):
            found.setdefault(macro, set()).add(1)
    return found


def differences(btf: Btf) -> Iterator[str]:
    """Yield each member that a kernel has in another size than the programs read, and each other prototype.

    Of a larger number the lower half is read, of an array the first part, of a bitfield its byte: only a read that is
    wider than its member is wrong. Reads by ``bpf_probe_read_kernel`` are not looked at.
    """
    for member in _members():
        size = next((size for path in _paths(member) if (size := btf.member_size(path)) is not None), None)
        for width in reads().get(member.macro, ()):
            if size is not None and width > size:
                yield f"{member.path}: {size} bytes, read as {width}"
    for hook in _tracepoints():
        found = btf.tracepoint(hook.event)
        if found is not None and tuple(found[1][: len(hook.args)]) != hook.args:
            yield f"{hook.name}({', '.join(found[1])}), known as ({', '.join(hook.args)})"


def lacks(btf: Btf) -> Iterator[str]:
    """Yield each member and tracepoint that a kernel has not, and what has to do without."""
    for member in _members():
        if all(btf.bit_offset(path) is None for path in _paths(member)):
            yield " or ".join(_paths(member)) + ("" if member.optional else " (needed)")
    for hook in _tracepoints():
        if btf.tracepoint(hook.event) is None:
            yield hook.name + ("" if hook.optional else " (needed)")


def _paths(member: Member) -> tuple[str, ...]:
    return member.path, *member.otherwise


def _members() -> list[Member]:
    return list(dict.fromkeys(member for probe in all_probes().values() for member in probe.members))


def _tracepoints() -> list[Tracepoint]:
    every = (hook for probe in all_probes().values() for hook in probe.hooks if isinstance(hook, Tracepoint))
    return list({hook.name: hook for hook in every}.values())
