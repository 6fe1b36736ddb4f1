"""Run the loader child and take over what it attached.

The child is the only process that imports bcc, and with it LLVM: it holds 120 MB and more, may exit or abort on
its own, changes directories and limits. It lives for half a second; programs stay attached as long as this
process holds the descriptors, and no longer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tracer.errors import UnavailableError

__all__ = ["Loaded", "LoaderError", "run_loader"]

_PACKET = 1 << 16
_START = "import sys; sys.path.append(sys.argv[1]); from loader.main import main; main()"


class LoaderError(UnavailableError):
    """The programs could not be compiled, loaded or attached."""


@dataclass
class Loaded:
    """Everything one loader run left behind. Descriptors are this process's: ``close`` detaches."""

    maps: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    handlers: dict[str, list[str]] = field(default_factory=dict)
    links: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def close(self) -> None:
        """Detach and free everything that is still held here."""
        for descriptor in (*self.links, *self.programs.values(), *self.maps.values()):
            os.close(descriptor)
        self.links, self.programs, self.maps = [], {}, {}


def run_loader(
    job: dict[str, Any], interpreter: str, fill: Callable[[dict[str, int]], None], *, timeout: float = 60.0
) -> Loaded:
    """Compile, load and attach ``job`` in a child; return what it handed over.

    ``fill(maps)`` is called when the maps exist and no program runs yet. Raises LoaderError with the compiler's,
    the verifier's or LLVM's own last words; nothing stays attached then.
    """
    loaded = Loaded()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, _empty_folder() as folder, tempfile.TemporaryFile() as words:
        try:
            child = _start(job, interpreter, theirs, folder, words)
        except OSError as error:
            raise LoaderError(f"can't run {interpreter}: {error.strerror}", hint=_HINT) from None
        finally:
            theirs.close()
        try:
            _converse(ours, loaded, fill, time.monotonic() + timeout)
            _await(child)
        except BaseException as error:
            loaded.close()
            if isinstance(error, (_Ended, ConnectionError)):
                _await(child)  # its own status says more than that of being killed
            child.kill()
            child.wait()
            if isinstance(error, (_Ended, TimeoutError, ConnectionError)):
                raise LoaderError(_last_words(child, words, error), hint=_HINT) from None
            raise
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    return loaded


@contextlib.contextmanager
def _empty_folder() -> Iterator[str]:
    """Give the child an empty working directory of our own: bcc puts it first on its include path.

    It always has the same name, so that a killed process leaves nothing new behind.
    """
    folder = Path("/run/foreshock")
    if _is_empty_and_ours(folder):
        yield str(folder)
        return
    with tempfile.TemporaryDirectory(prefix="foreshock-") as other:
        yield other


def _is_empty_and_ours(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
        return ours and not any(folder.iterdir())
    except OSError:
        return False


_HINT = "foreshock doctor tells what this node lacks; FORESHOCK_DEBUG=1 shows the loader's whole output"


class _Ended(Exception):
    """The loader stopped without being done; the text is its reason, if it gave one."""


def _start(
    job: dict[str, Any], interpreter: str, channel: socket.socket, folder: str, words: IO[bytes]
) -> subprocess.Popen[bytes]:
    environment = {"BCC_KERNEL_SOURCE": job["headers"], "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    command = [interpreter, "-I", "-c", _START, str(Path(__file__).parent), str(channel.fileno())]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=words,
        stderr=words,
        pass_fds=[channel.fileno()],
        cwd=folder,
        env=environment,
        # Ctrl-C goes to the whole foreground group: the child must not die of it half-way and leave
        # a traceback; it dies with this process instead.
        start_new_session=True,
    )
    assert child.stdin is not None
    # It may have died at once; its last words say why.
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(job).encode())
        child.stdin.close()
    return child


def _await(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=5)


def _converse(channel: socket.socket, loaded: Loaded, fill: Callable[[dict[str, int]], None], deadline: float) -> None:
    while True:
        channel.settimeout(max(0.01, deadline - time.monotonic()))
        data, descriptors, _flags, _address = socket.recv_fds(channel, _PACKET, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise _Ended("")
        message = json.loads(data)
        _keep(message, descriptors, loaded)
        if "fill" in message:
            fill(loaded.maps)
            channel.send(b"go")
        elif "error" in message:
            raise _Ended(message["error"])
        elif "done" in message:
            loaded.seconds = message["seconds"]
            return


def _keep(message: dict[str, Any], descriptors: list[int], loaded: Loaded) -> None:
    for descriptor in descriptors:
        if "map" in message:
            loaded.maps[message["map"]] = descriptor
        elif "program" in message:
            loaded.programs[message["program"]] = descriptor
            loaded.handlers[message["program"]] = message["probes"]
        else:
            loaded.links.append(descriptor)
    if "refused" in message:
        loaded.refused[message["refused"]] = message["reason"]
    if "missing" in message:
        loaded.missing.append((message["missing"], message["reason"]))


def _last_words(child: subprocess.Popen[bytes], words: IO[bytes], error: BaseException) -> str:
    """Say in one line why the loader ended: its own reason, and the last line of what it printed."""
    words.seek(0)
    text = words.read(1 << 20).decode(errors="replace")
    if os.environ.get("FORESHOCK_DEBUG"):
        os.write(2, text.encode())
    lines = [line.strip() for line in text.splitlines() if "error" in line.lower()] or text.split("\n")[-2:-1]
    printed = f": {lines[0][:300]}" if lines and lines[0] else ""
    if isinstance(error, TimeoutError):
        return f"the loader did not finish in time{printed}"
    if isinstance(error, _Ended) and str(error):
        return f"{error}{printed}" if "bcc" in str(error) else str(error)
    how = f"with status {child.returncode}" if child.returncode >= 0 else f"by signal {-child.returncode}"
    return f"the loader ended {how} while compiling or loading{printed}"
