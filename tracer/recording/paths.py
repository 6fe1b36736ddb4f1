"""Where a recording goes: the host and the time in a path, and paths as messages show them."""

from __future__ import annotations

import os
import platform
import re
from datetime import datetime, timezone

from tracer.errors import UsageError

__all__ = ["expand_path", "shown"]

_SEQUENCE = re.compile(r"%(.?)", re.S)
_MAX_HOST = 64  # as long as Linux lets a host name be


def expand_path(template: str, *, host: str | None = None, now: datetime | None = None) -> str:
    """Return ``template`` with ``%h`` (host), ``%t`` (UTC time, ``20261130T020138Z``) and ``%%`` replaced.

    ``host`` is this machine's name and ``now`` (with a time zone) the present unless given. Raises UsageError
    for any other sequence.
    """
    moment = (now or datetime.now(timezone.utc)).astimezone(timezone.utc)
    values = {
        "h": _file_name(platform.node() if host is None else host),
        "t": moment.strftime("%Y%m%dT%H%M%SZ"),
        "%": "%",
    }

    def replaced(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise UsageError(
                f"output path {shown(template)}: unknown sequence {shown(match[0])}.",
                hint="use %h for the host, %t for the UTC time, %% for a per cent sign",
            )
        return values[match[1]]

    return _SEQUENCE.sub(replaced, template)


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a one-line message: as it is when printable, else quoted and escaped."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)


def _file_name(host: str) -> str:
    # The name may come from DHCP: "../../etc/x" must not lead elsewhere, and a leading dot would hide the file.
    return re.sub(r"[^A-Za-z0-9._-]", "_", host).lstrip(".")[:_MAX_HOST] or "host"
