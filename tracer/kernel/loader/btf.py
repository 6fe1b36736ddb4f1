"""A small reader of the kernel's own type information (BTF), enough to find members and tracepoint arguments.

Standard library only and Python 3.6. Format: Documentation/bpf/btf.rst.
"""

import array
import struct
from typing import Dict, List, Optional, Tuple

_HEADER = struct.Struct("<HBBIIIII")

_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR, _DATASEC, _FLOAT = range(9, 17)
_DECL_TAG, _TYPE_TAG, _ENUM64 = range(17, 20)

# Words after the three of the type itself: a fixed number, or so many per member (vlen).
_FIXED = {_INT: 1, _ARRAY: 3, _VAR: 1, _DECL_TAG: 1}
_PER_MEMBER = {_STRUCT: 3, _UNION: 3, _ENUM: 2, _FUNC_PROTO: 2, _DATASEC: 3, _ENUM64: 3}
_SKIPPED = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)


class Btf:
    """Types of the running kernel by name."""

    def __init__(self, data):
        # type: (bytes) -> None
        magic, _version, _flags, header, types_at, types_size, names_at, names_size = _HEADER.unpack_from(data)
        if magic != 0xEB9F:
            raise ValueError("not BTF, or of the other byte order")
        names_from = header + names_at
        self._names = data[names_from : names_from + names_size]
        self._words = array.array("I", data[header + types_at : header + types_at + types_size])
        self._starts, self._named = self._index()

    @classmethod
    def running_kernel(cls):
        # type: () -> Btf
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            return cls(file.read())

    def _index(self):
        # type: () -> Tuple[List[int], Dict[Tuple[int, int], int]]
        """Return where each type id starts, and the id of each (kind, name offset) that can be looked up."""
        words, starts, named = self._words, [0], {}  # type: array.array[int], List[int], Dict[Tuple[int, int], int]
        at, end = 0, len(words)
        while at < end:
            info = words[at + 1]
            kind = info >> 24 & 0x1F
            if kind in (_STRUCT, _TYPEDEF, _ENUM):
                named.setdefault((kind, words[at]), len(starts))
            elif not 0 < kind <= _ENUM64:
                break  # a kind this reader does not know has an unknown length: what came before is usable
            starts.append(at)
            at += 3 + _FIXED.get(kind, 0) + _PER_MEMBER.get(kind, 0) * (info & 0xFFFF)
        return starts, named

    def _find(self, kind, name):
        # type: (int, str) -> Optional[int]
        # A string can stand in the table more than once only as the tail of another: take whole ones.
        wanted = b"\0" + name.encode() + b"\0"
        at = self._names.find(wanted)
        return self._named.get((kind, at + 1)) if at >= 0 else None

    def _name(self, offset):
        # type: (int) -> str
        return self._names[offset : self._names.index(b"\0", offset)].decode()

    def _kind(self, type_id):
        # type: (int) -> int
        return self._words[self._starts[type_id] + 1] >> 24 & 0x1F if type_id else 0

    def _resolve(self, type_id):
        # type: (int) -> int
        while self._kind(type_id) in _SKIPPED:
            type_id = self._words[self._starts[type_id] + 2]
        return type_id

    def member_offset(self, path):
        # type: (str) -> Optional[int]
        """Return the byte offset of ``"task_struct.se.sched_delayed"``; None where the kernel has no such member."""
        bits = self.bit_offset(path)
        return bits // 8 if bits is not None and bits % 8 == 0 else None

    def bit_offset(self, path):
        # type: (str) -> Optional[int]
        """Return the offset of a member in bits: bitfields need not begin with a byte."""
        found = self._walk(path)
        return found[0] if found is not None else None

    def member_size(self, path):
        # type: (str) -> Optional[int]
        """Return a member's size in bytes, of a bitfield that of its type; None where the kernel has no such member."""
        found = self._walk(path)
        return self._size(found[1]) if found is not None else None

    def _walk(self, path):
        # type: (str) -> Optional[Tuple[int, int]]
        parts = path.split(".")
        type_id = self._find(_STRUCT, parts[0])
        offset_bits = 0
        for part in parts[1:]:
            if type_id is None:
                return None
            found = self._member(self._resolve(type_id), part)
            if found is None:
                return None
            offset_bits += found[0]
            type_id = found[1]
        return (offset_bits, type_id) if type_id is not None else None

    def _size(self, type_id):
        # type: (int) -> int
        type_id = self._resolve(type_id)
        kind, at = self._kind(type_id), self._starts[type_id]
        if kind == _PTR:
            return struct.calcsize("P")
        if kind == _ARRAY:
            return self._size(self._words[at + 3]) * self._words[at + 5]
        return self._words[at + 2]

    def _member(self, type_id, name):
        # type: (int, str) -> Optional[Tuple[int, int]]
        """Return (offset in bits, type) of a member, looking into unnamed structs and unions."""
        if self._kind(type_id) not in (_STRUCT, _UNION):
            return None
        at = self._starts[type_id]
        info = self._words[at + 1]
        for member in range(at + 3, at + 3 + 3 * (info & 0xFFFF), 3):
            name_at, member_type, offset = self._words[member : member + 3]
            if info >> 31:  # bitfields present: the offset's upper byte is the width
                offset &= 0xFFFFFF
            if not name_at:
                inner = self._member(self._resolve(member_type), name)
                if inner is not None:
                    return offset + inner[0], inner[1]
            elif self._name(name_at) == name:
                return offset, member_type
        return None

    def enum_value(self, enum, name):
        # type: (str, str) -> Optional[int]
        """Return the value of ``name`` in ``enum``; None where the kernel lacks either."""
        type_id = self._find(_ENUM, enum)
        if type_id is None:
            return None
        at = self._starts[type_id]
        for item in range(at + 3, at + 3 + 2 * (self._words[at + 1] & 0xFFFF), 2):
            if self._name(self._words[item]) == name:
                return self._words[item + 1]
        return None

    def tracepoint(self, event):
        # type: (str) -> Optional[Tuple[int, List[str]]]
        """Return ``(type id to attach to, argument types)`` of a tracepoint; None where the kernel lacks it.

        Source: each tracepoint leaves ``typedef void (*btf_trace_EVENT)(void *, ARGS…)`` (since v5.5).
        """
        type_id = self._find(_TYPEDEF, "btf_trace_" + event)
        if type_id is None:
            return None
        pointer = self._resolve(type_id)
        prototype = self._starts[self._words[self._starts[pointer] + 2]]
        count = self._words[prototype + 1] & 0xFFFF
        # The first argument is the tracepoint's private data, which programs do not see.
        arguments = self._words[prototype + 5 : prototype + 3 + 2 * count]
        return type_id, [self._spell(argument) for argument in arguments[1::2]]

    def _spell(self, type_id):
        # type: (int) -> str
        """Spell a type as C does, without const: ``struct task_struct *``, ``unsigned int``, ``bool``."""
        kind = self._kind(type_id)
        if not type_id:
            return "void"
        at = self._starts[type_id]
        if kind in (_VOLATILE, _CONST, _RESTRICT, _TYPE_TAG):
            return self._spell(self._words[at + 2])
        if kind == _PTR:
            inner = self._spell(self._words[at + 2])
            return inner + ("*" if inner.endswith("*") else " *")
        prefix = {_STRUCT: "struct ", _UNION: "union ", _ENUM: "enum ", _FWD: "struct "}.get(kind, "")
        return prefix + self._name(self._words[at])
