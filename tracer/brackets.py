"""What stands in brackets where a name of a function, a module or a task would: words of ours, and the kernel's."""

from __future__ import annotations

__all__ = [
    "ANONYMOUS",
    "BEFORE_EXEC",
    "BLOCKED_ALL_ALONG",
    "FOREIGN",
    "IDLE",
    "KERNEL",
    "LATE",
    "LOST",
    "NOBODY_SEEN",
    "NOTHING_TO_DO",
    "NOT_KNOWN",
    "NO_STACK",
    "OTHERS",
    "OTHER_TASKS",
    "OWN",
    "PROCESS_ENDED",
    "PRUNED",
    "STILL_BLOCKED",
    "UNKNOWN",
    "UNKNOWN_AT",
    "UNRECORDED",
    "VDSO",
]

#: Of modules: the kernel itself, memory that has no file, and the kernel's part of every process.
KERNEL, ANONYMOUS, VDSO = "[kernel]", "[anonymous]", "[vdso]"
#: Of frames: one or all of a stack that nobody could name.
UNKNOWN, LATE, LOST = "[unknown]", "[symbols late]", "[stack lost]"
PROCESS_ENDED, FOREIGN = "[process ended]", "[another pid namespace]"
#: What a frame without a name begins with; a name of people's follows (``module+0x1f``, ``comm``), or an address.
UNKNOWN_AT, BEFORE_EXEC, UNRECORDED = "[unknown ", "[unknown before exec: ", "[unknown for want of records: "
#: Of stacks in reports and exports.
NO_STACK, PRUNED, OTHERS = "[no stack]", "[pruned]", "[others: too many to tell apart]"
#: Of who held a CPU, or woke a task.
OTHER_TASKS, IDLE, NOT_KNOWN, NOTHING_TO_DO = (
    "[other tasks]",
    "[idle: nobody had it]",
    "[not known]",
    "[found nothing to do]",
)
STILL_BLOCKED, BLOCKED_ALL_ALONG, NOBODY_SEEN = (
    "[still blocked at the end]",
    "[blocked all along]",
    "[nobody was seen]",
)

#: All that name nobody.
OWN = frozenset({KERNEL, ANONYMOUS, VDSO, UNKNOWN, LATE, LOST, PROCESS_ENDED, FOREIGN, NO_STACK, PRUNED, OTHERS})
OWN |= {OTHER_TASKS, IDLE, NOT_KNOWN, NOTHING_TO_DO, STILL_BLOCKED, BLOCKED_ALL_ALONG, NOBODY_SEEN}
