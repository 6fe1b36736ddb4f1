"""The bit of an x86 task's ``thread_info.flags`` that says another task is due.

The bits are macros, so BTF has no word of them, and the preemption count, which has the same sign in its top bit, can
be read only where the kernel keeps the names of its variables (CONFIG_KALLSYMS_ALL): the release decides.
"""

from __future__ import annotations

import platform
import re

__all__ = ["constants", "need_resched_bit"]

#: By the release that began it, newest first. Since "x86: Use generic TIF bits" (in v6.18) they are those of
#: include/asm-generic/thread_info_tif.h; before, those of arch/x86/include/asm/thread_info.h, unchanged since 2.6.
_X86 = (((6, 18), 4), ((2, 6), 3))


def need_resched_bit(machine: str, release: str) -> int | None:
    """Return the number of TIF_NEED_RESCHED, None where it isn't known. ``release`` is that of uname(2)."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if machine != "x86_64" or not found:
        return None
    version = int(found[1]), int(found[2])
    return next((bit for since, bit in _X86 if version >= since), None)


def constants() -> dict[str, int]:
    """Return what programs of the running kernel are compiled with: nothing that isn't known."""
    bit = need_resched_bit(platform.machine(), platform.release())
    return {} if bit is None else {"TIF_NEED_RESCHED": bit}
