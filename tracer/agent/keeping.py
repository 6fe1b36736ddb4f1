"""What an agent leaves to the next one: which alerts fire, in a file that is replaced whole."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracer.errors import OutputError

__all__ = ["Keeper", "load", "prepare"]

_MOST_BYTES = 4 << 20
_VERSION = 1
#: While something fires, the state is another one every second; the disk is spared.
_PAUSE_SECONDS = 5.0
_OTHER = "--state FILE, in a folder that may be written to"
#: Every state begins so: what begins otherwise is somebody's, and not to be replaced.
_BEGINS = b'{"version": '


def prepare(path: Path) -> None:
    """Make the folder of ``path``. Raises OutputError if there can't be a file, or there is one that is no state."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path.parent} can't be made: {error.strerror}.", hint=_OTHER) from None
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path} can't be written.", hint=_OTHER)
    if _is_foreign(path):
        raise OutputError(f"{path} holds something else, which would be lost.", hint="--state FILE of its own")


def load(path: Path) -> tuple[dict[str, Any], str]:
    """Return the state in a file, and what to say if there is one that can't be used: it is ignored then."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{path} can't be read, alerts are told anew: {error.strerror}"
    try:
        state = json.loads(data) if len(data) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        return {}, f"{path} is damaged or of another version, alerts are told anew"
    return state, ""


def _is_foreign(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            # A power cut may leave zeros.
            begins = file.read(len(_BEGINS)).rstrip(b"\0")
    except OSError:
        return False
    return not _BEGINS.startswith(begins)


class Keeper:
    """Writes states to ``path`` in a thread of its own: a disk that hangs stops nobody else.

    ``error`` says why the last one could not be written; "" when it was.
    """

    def __init__(self, path: Path) -> None:
        self.error = ""
        self._path = path
        self._state: Mapping[str, Any] | None = None
        self._kept = ""
        self._change = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="state", daemon=True)
        self._thread.start()

    def keep(self, state: Mapping[str, Any]) -> None:
        """Have ``state`` written; of several in a row the last. Never waits."""
        with self._change:
            self._state = state
            self._change.notify()

    def close(self, seconds: float = 1.0) -> None:
        """Write what there is, as far as the disk does it within ``seconds``."""
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._change:
                while self._state is None and not self._closing:
                    self._change.wait()
                state, self._state = self._state, None
            if state is None:
                return
            self._write(json.dumps({"version": _VERSION, **state}))
            with self._change:
                self._change.wait_for(lambda: self._closing, _PAUSE_SECONDS)

    def _write(self, text: str) -> None:
        if text == self._kept:
            return
        # Always the same name: one that was left by a crash is written over.
        beside = self._path.with_name(f".{self._path.name}.new")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            os.replace(beside, self._path)
            self._kept, self.error = text, ""
        except OSError as error:
            self.error = f"{self._path} can't be written: {error.strerror}"
            with contextlib.suppress(OSError):
                beside.unlink()
