"""How the command line fails: one line that says what happened, one what to do, and an exit code."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from tracer.commands._streams import aside
from tracer.errors import ForeshockError, NotAllowedError, OutputError, UnavailableError, UsageError

__all__ = ["BUG", "INTERRUPTED", "BROKEN_PIPE", "complain", "failures", "keeping", "own_command"]

BUG = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE

# EBADF: standard output was closed when we began.
_OUTPUT_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
#: Where they are mounted: the file systems' type, and what is in each of them.
_MOUNTED = {"/proc": ("proc", "self"), "/sys": ("sysfs", "devices")}
_FULL = "free some space, or send it elsewhere"
_WRITE_HINTS: dict[int | None, str] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EBADF: "give it one: > FILE, or | less",
}


@contextmanager
def failures() -> Iterator[None]:
    """Turn whatever is raised inside into the message and exit code of docs/cli.md; click's own control flow passes."""
    try:
        yield
        # A pipe that broke is found out here rather than at the interpreter's shutdown, which would print a traceback.
        sys.stdout.flush()
    except (click.exceptions.Exit, SystemExit):
        raise
    except BaseException as error:
        _fail(error)


@contextmanager
def keeping(path: str) -> Iterator[None]:
    """Say that the recording at ``path`` is whole when what is printed inside can't be written."""
    try:
        yield
    except OSError as error:
        if not (why := _output_failure(error)):
            raise
        _drop_output()
        from tracer.recording.paths import shown

        raise OutputError(f"can't write the output: {why}", hint=f"the recording is kept: {shown(path)}") from None


def _fail(error: BaseException) -> NoReturn:
    code = _report(error)
    if os.environ.get("FORESHOCK_DEBUG") == "1" and code not in (BROKEN_PIPE, INTERRUPTED):
        traceback.print_exception(error)
    raise SystemExit(code)


def _report(error: BaseException) -> int:
    match error:
        case NotAllowedError():
            complain("error", error.message, f"sudo {own_command()}; {error.hint}")
            return error.exit_code
        case ForeshockError():
            complain("error", error.message, error.hint)
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message())
            return UsageError.exit_code
        case click.UsageError():
            complain("error", _one_line(error.format_message()), f"{_command_of(error)} --help")
            return UsageError.exit_code
        case click.ClickException():
            complain("error", _one_line(error.format_message()))
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            complain("interrupted")
            return INTERRUPTED
        case BrokenPipeError():
            _drop_output()
            return BROKEN_PIPE
        case OSError() if why := _output_failure(error):
            _drop_output()
            complain("error", f"can't write the output: {why}", _WRITE_HINTS.get(error.errno, ""))
            return OutputError.exit_code
        case OSError() if error.errno in (errno.EMFILE, errno.ENFILE):
            complain("error", "too many open files", "raise the limit: ulimit -n 4096, LimitNOFILE=4096 in a unit")
            return UnavailableError.exit_code
        case FileNotFoundError() if missing := _not_mounted():
            complain("error", f"{missing} is not mounted", f"mount -t {_MOUNTED[missing][0]} none {missing}")
            return UnavailableError.exit_code
        case MemoryError() | OSError(errno=errno.ENOMEM):
            complain("error", "out of memory", "free some, or raise the limit: ulimit -v, the cgroup's memory.max")
            return UnavailableError.exit_code
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    complain("bug", f"{what}; please report, rerun with FORESHOCK_DEBUG=1 for the traceback")
    return BUG


def _command_of(error: click.UsageError) -> str:
    """Return what was misused, as typed: ``foreshock compare``."""
    if error.ctx is not None:
        return error.ctx.command_path
    # click's parser does not say where an option lacks its argument: inside the command that is about to run.
    context = click.get_current_context(silent=True)
    return f"foreshock {context.invoked_subcommand if context else ''}".rstrip()


def _output_failure(error: OSError) -> str:
    """Return why standard output could not be written; "" when that is not what failed."""
    if error.errno not in _OUTPUT_FAILED or error.filename is not None:
        return ""
    return "standard output is closed" if error.errno == errno.EBADF else error.strerror or str(error)


def _not_mounted() -> str:
    """Return which of the file systems that no node is without is missing: in a bare chroot, for example."""
    return next((root for root, (_, known) in _MOUNTED.items() if not os.path.exists(f"{root}/{known}")), "")


def complain(kind: str, message: str = "", hint: str = "") -> None:
    """Print what happened and what to do about it, one line each. ``kind`` is error, bug or the like."""
    # Imported here: a run that doesn't fail needs nothing of the reports.
    from tracer.escape import printable

    aside(": ".join(filter(None, ("foreshock", kind, printable(message)))))
    if hint:
        aside(f"hint: {printable(hint)}")


def own_command() -> str:
    """Return what the user typed, for a shell.

    sudo looks for commands in folders of its own: the program's path is given.
    """
    program = [sys.argv[0]] if os.access(sys.argv[0], os.X_OK) else [sys.executable, "-m", "tracer"]
    return shlex.join([*program, *sys.argv[1:]])


def _one_line(message: str) -> str:
    # click lays some messages out over lines (choices); what came from data stays inside its quotes.
    return " ".join(message.split())


def _drop_output() -> None:
    """Point standard output at nothing, so that what is still buffered can't fail again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # Not a real file, or closed already: nothing is left to fail.
        return
