"""The option to hand something on without names, and recordings read that way."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracer.errors import UsageError

if TYPE_CHECKING:
    from tracer.blackbox.redact import Redactor
    from tracer.recording import RecordingReader
    from tracer.window import Window

__all__ = ["redactor_of", "redaction_options", "without_names"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_LEAST_KEY = 16


def redaction_options(command: _Command) -> _Command:
    """Add ``redact`` and ``key_file``."""
    for option in (
        click.option("--key", "key_file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                     help="The hashes' secret, for the same ones every time; default: a new one."),
        click.option("--redact", is_flag=True,
                     help="Replace names of tasks, cgroups, programs, the host and addresses by hashes."),
    ):  # fmt: skip
        command = option(command)
    return command


def redactor_of(redact: bool, key_file: str | None) -> Redactor | None:
    """Return what hides names, if it is wanted. Raises UsageError."""
    if key_file and not redact:
        raise UsageError("--key is for --redact only.")
    if not redact:
        return None
    from tracer.blackbox.redact import Redactor

    return Redactor(_key(key_file))


def without_names(
    reader: RecordingReader, redactor: Redactor | None
) -> tuple[Mapping[str, Any], Iterable[list[Window]]]:
    """Return a recording's header and its intervals, redacted if there is a ``redactor``.

    It is read once more for that: a sentence may tell a name before its column does. Raises RecordingError, also when
    the intervals of what can't be read twice are asked for.
    """
    if redactor is None:
        return reader.header, reader
    from tracer.blackbox.unnamed import unnamed_header

    redactor.learn_header(reader.header)
    for windows in reader:
        redactor.learn_windows(windows)
    return unnamed_header(reader.header, redactor), (list(map(redactor.window, windows)) for windows in reader)


def _key(path: str | None) -> bytes:
    if path is None:
        return secrets.token_bytes(32)
    with open(path, "rb") as file:
        key = file.read(1 << 16).strip()
    if len(key) < _LEAST_KEY:
        raise UsageError(f"the key in {path} has {len(key)} bytes; it needs {_LEAST_KEY}.", hint="openssl rand -hex 32")
    return key
