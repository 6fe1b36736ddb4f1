"""A header and an alert without names: what is foreshock's own in them, and the kernel's, stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracer.alerts.alert import Alert, Subject
from tracer.blackbox.redact import Redactor

__all__ = ["unnamed_alert", "unnamed_header"]

#: What no node's people have named: probes, tables and units, versions.
_OWN = frozenset({"tool", "version", "kernel", "architecture", "boot_id", "probes", "missing", "refused"})
#: Subjects that are called by numbers and words of ours.
_NAMELESS = frozenset({"node", "cpu", "memory"})


def unnamed_header(header: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return a recording's header, redacted."""
    return {key: value if key in _OWN else redactor.tree(value, key) for key, value in header.items()}


def unnamed_alert(alert: Alert, redactor: Redactor) -> Alert:
    """Return an alert, redacted: its names where they stand alone, and those in its sentence."""
    condition, culprit = alert.condition, alert.condition.culprit
    if culprit:
        # Stack and module are the kernel's.
        culprit = replace(culprit, task=redactor.task(culprit.task), context=redactor.text(culprit.context))
    hidden = replace(
        condition,
        subject=_subject(condition.subject, redactor),
        summary=redactor.text(condition.summary),
        culprit=culprit,
    )
    return replace(alert, condition=hidden, node=redactor.name(alert.node))


def _subject(subject: Subject, redactor: Redactor) -> Subject:
    if subject.kind in _NAMELESS:
        return subject
    if subject.kind == "task":
        return replace(subject, name=redactor.task(subject.name))
    return replace(subject, name=(redactor.name if subject.kind == "cgroup" else redactor.text)(subject.name))
