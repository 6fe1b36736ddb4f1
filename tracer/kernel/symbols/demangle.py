"""Names as compilers of C++ and Rust write them, as people write them.

By multi-demangle, in Rust, which bounds its recursion and its output: the names' author is the watched program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

__all__ = ["LONGEST_MANGLED", "demangled"]

#: Longer names are cut, and stay as they are.
LONGEST_MANGLED = 4096

_PREFIXES = (b"_Z", b"_R")


def demangled(name: bytes) -> bytes:
    """Return a function's name without its parameters, which would crowd it out; as it is where it isn't mangled."""
    if not name.startswith(_PREFIXES) or not name.isascii():
        return name
    return _demangler()(name.decode("ascii")).encode(errors="replace")


@cache
def _demangler() -> Callable[[str], str]:
    # Not needed unless stacks are taken.
    from multi_demangle import DemangleOptions, demangle_symbol

    options = DemangleOptions.name_only()
    return lambda name: str(demangle_symbol(name, options))
