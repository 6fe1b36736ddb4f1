"""How a line of the kernel's log is described that means something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracer.alerts.alert import Severity

__all__ = ["PCI", "Groups", "LogPattern"]

#: A regular expression's groups by name, "" for those that took no part.
Groups = Mapping[str, str]

#: The address of a PCI device in a line.
PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"


@dataclass(frozen=True)
class LogPattern:
    """One kind of line.

    ``rule`` is the name of the alert rule that tells it. ``regex`` is matched from the line's first character on and
    has to say exactly what the kernel prints: no name of a task, file or device in a line may make it look like
    another. ``says`` is one clause with the groups in braces, ``next`` what to do about it where the rule's own advice
    is too general. ``kind`` and ``about`` make the subject: its kind, and its name with groups in braces, none of them
    volatile. ``judge`` returns severity and clause where they depend on a code in the line. A group ``comm`` is the
    task that the kernel names.
    """

    rule: str
    regex: str
    severity: Severity
    says: str
    next: str = ""
    kind: str = "device"
    about: str = "{device}"
    judge: Callable[[Groups], tuple[Severity, str]] | None = None
