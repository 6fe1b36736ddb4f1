"""One start of a trace, stage by stage; prints seconds as JSON. Run by start.py in a fresh process."""

# Imports are among the stages: they stand where their time is taken.

from __future__ import annotations

import sys
import time


def main() -> None:
    """Take the steps of ``foreshock record`` up to the first interval; argv[1] is when the process was started."""
    laps = {"Python starts": time.time() - float(sys.argv[1])}
    last = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        laps[name] = now - last
        last = now

    import tracer.commands.record  # noqa: F401

    lap("imports: command line")
    import numpy  # noqa: F401, ICN001

    lap("imports: numpy")
    from tracer.collect.trace import Request, Trace
    from tracer.recording import RecordingWriter  # noqa: F401

    lap("imports: tracing and recording")
    from tracer.probes import all_probes

    all_probes()
    lap("imports: probes")
    from tracer.kernel.interpreter import find_interpreter

    find_interpreter()
    lap("find the Python that has bcc")
    trace = Trace(Request())
    lap("attach")
    trace.header()
    lap("fingerprint for the header")
    laps.update({f"loader: {name}": seconds for name, seconds in trace.seconds.items()})
    laps["loader: start, exit, hand-over"] = laps["attach"] - sum(trace.seconds.values())
    trace.close()
    import json

    print(json.dumps(laps))
