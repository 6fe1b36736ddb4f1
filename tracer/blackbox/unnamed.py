"""A header and an alert without names: what is foreshock's own in them, and the kernel's, stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracer.alerts.alert import Alert, Subject
from tracer.alerts.record import OCCASION, alert_record, occasion
from tracer.blackbox.commandline import unnamed_command, unnamed_value
from tracer.blackbox.redact import Redactor

__all__ = ["unnamed_alert", "unnamed_header"]

#: What no node's people have named: probes, tables and units, versions.
_OWN = frozenset({"tool", "version", "kernel", "architecture", "boot_id", "probes", "missing", "refused"})
#: Subjects that are called by numbers and words of ours.
_NAMELESS = frozenset({"node", "cpu", "memory"})


def unnamed_header(header: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return a recording's header, redacted."""
    hidden = {key: value if key in _OWN else redactor.tree(value, key) for key, value in header.items()}
    if isinstance(labels := header.get("labels"), Mapping):
        hidden["labels"] = {name: unnamed_value(str(value), redactor) for name, value in labels.items()}
    if OCCASION in hidden:
        alert = occasion(header)
        hidden[OCCASION] = alert_record(unnamed_alert(alert, redactor)) if alert else None
    command = header.get("command")
    if isinstance(command, (list, tuple)):
        hidden["command"] = unnamed_command([str(one) for one in command], redactor)
    return hidden


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
    # What was recorded stays on the node: its path and its stacks say names only.
    return replace(alert, id=redactor.id(alert.id), condition=hidden, node=redactor.name(alert.node), evidence=None)


def _subject(subject: Subject, redactor: Redactor) -> Subject:
    if subject.kind in _NAMELESS:
        return subject
    if subject.kind == "task":
        return replace(subject, name=redactor.task(subject.name))
    if subject.kind == "device":
        return replace(subject, name=redactor.device(subject.name))
    return replace(subject, name=(redactor.name if subject.kind == "cgroup" else redactor.text)(subject.name))
