"""One close-up, in a process of its own: attach, look for some seconds, detach, give everything up, write.

It dies with who forked it and what it attached dies with it. Every part has a bound in time, and the whole of it an
alarm; what is written is written without privileges, at the lowest priority, and with bounded memory.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from tracer.closeup.order import Order
from tracer.closeup.terms import Terms
from tracer.errors import ForeshockError
from tracer.kernel import privilege
from tracer.kernel.processes import die_with, first_to_go, own_name

__all__ = ["work"]

NAME = "foreshock-deep"
#: Attaching takes 45 s at most, the agent's part comes within 15 s, the report takes the rest.
_MARGIN_SECONDS = 180
_REPORT_CPU_SECONDS = 60
_REPORT_BYTES = 512 << 20


def work(channel: socket.socket, terms: Terms, order: Order, parent: int) -> NoReturn:
    """Do it all and end; called in the forked process."""
    code = 1
    try:
        die_with(parent)
        own_name(NAME)
        gc.enable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(terms.for_ns // 1_000_000_000 + _MARGIN_SECONDS)
        first_to_go()
        _work(channel, terms, order)
        code = 0
    except ForeshockError as error:
        _say(channel, {"failed": error.message})
    except MemoryError:
        _say(channel, {"failed": "it took more memory than it may"})
    except OSError as error:
        _say(channel, {"failed": (error.strerror or str(error)).lower()})
    except BaseException as error:
        _say(channel, {"failed": f"{type(error).__name__}: {error}"})
        if os.environ.get("FORESHOCK_DEBUG") == "1":
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


def _work(channel: socket.socket, terms: Terms, order: Order) -> None:
    # Not at the top: the agent has no use for these, and shares its memory with its sentinels.
    from tracer.closeup.looking import look
    from tracer.closeup.telling import Strongest
    from tracer.closeup.writing import write_recording, write_report

    seen = look(channel, terms, order, lambda message: _say(channel, message))
    privilege.keep_only(())
    os.nice(19)
    strongest = Strongest(order.alert, seen.header)
    recording = write_recording(terms.folder, order, seen, strongest.add)
    _say(channel, {"recording": recording, "stacks": list(strongest.lines()), "cpu_s": _cpu_seconds()})
    _bound()
    report = write_report(recording)
    _say(channel, {"report": report, "cpu_s": _cpu_seconds()})


def _say(channel: socket.socket, message: Mapping[str, Any]) -> None:
    try:
        channel.send(json.dumps(message).encode())
    except OSError:
        os._exit(1)  # nobody is there any more


def _cpu_seconds() -> float:
    """Return what this process and those it has started and reaped took."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(one.ru_utime + one.ru_stime for one in used), 3)


def _bound() -> None:
    used = int(_cpu_seconds())
    for what, most in ((resource.RLIMIT_CPU, used + _REPORT_CPU_SECONDS), (resource.RLIMIT_DATA, _REPORT_BYTES)):
        resource.setrlimit(what, (most, most))
