"""``python -m tests.calm``: run an agent beside healthy work and count what it says; exit code 1 for any page."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .loads import LOADS

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "false-alarms.md"
NOTE = "<!-- Written by `make calm` from what it measured: edit tests/calm, not this page. -->"
#: Two loads at a time, in this order, round and round: whatever is heavy here meets whatever else is.
_REST_SECONDS = 5


def main() -> int:
    """Let every load run, alone and beside the next one, and print what the agent said meanwhile."""
    parser = argparse.ArgumentParser(prog="python -m tests.calm", description=main.__doc__)
    parser.add_argument("loads", nargs="*", choices=[[], *LOADS], metavar="LOAD", help=f"of {', '.join(LOADS)}")
    parser.add_argument("--minutes", type=float, default=20, help="how long in all (default: 20)")
    parser.add_argument("--write", action="store_true", help="write docs/false-alarms.md")
    options = parser.parse_args()
    # The agent, and the loads, must not outlive this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = options.loads or list(LOADS)
    seconds = max(1.0, options.minutes * 60 / len(names) - _REST_SECONDS)
    with tempfile.TemporaryDirectory(prefix="foreshock-calm-") as folder:
        alerts = Path(folder) / "alerts.jsonl"
        with _agent(alerts, Path(folder)):
            said = {"(alone)": _during(alerts, lambda: time.sleep(_REST_SECONDS))}
            for number, name in enumerate(names):
                beside = names[(number + 1) % len(names)]
                said[f"{name}, {beside}"] = _during(alerts, lambda: _together(name, beside, seconds))  # noqa: B023
                print(f"calm: {name} beside {beside}, {seconds:.0f} s: {_told(said[f'{name}, {beside}'])}", flush=True)
                time.sleep(_REST_SECONDS)
    text = _page(said, seconds)
    print(text)
    if options.write:
        PAGE.write_text(text)
    return int(any(severity == "page" for counts in said.values() for _, severity in counts))


@contextlib.contextmanager
def _agent(alerts: Path, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tracer", "agent", "--foreground", "--sink", f"json:{alerts}"]
    command += ["--state", str(folder / "state"), "--blackbox", str(folder / "box")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=log, stderr=log)
        try:
            time.sleep(5)
            if process.poll() is not None:
                raise SystemExit(f"calm: the agent ended: {(folder / 'log').read_text()[-2000:]}")
            yield
            if process.poll() is not None:
                raise SystemExit(f"calm: the agent did not survive: {(folder / 'log').read_text()[-2000:]}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _together(first: str, second: str, seconds: float) -> None:
    command = [sys.executable, "-c", f"from tests.calm.loads import LOADS; LOADS[{second!r}]({seconds})"]
    other = subprocess.Popen(command, cwd=CHECKOUT)
    try:
        LOADS[first](seconds)
        other.wait(timeout=seconds + 60)
    finally:
        other.kill()
        other.wait()


def _during(alerts: Path, work: object) -> Counter[tuple[str, str]]:
    """Return how often each (rule, severity) began to fire while ``work`` ran."""
    before = alerts.stat().st_size if alerts.exists() else 0
    assert callable(work)
    work()
    time.sleep(2)
    lines = alerts.read_bytes()[before:].splitlines() if alerts.exists() else []
    records = [json.loads(line) for line in lines]
    firing = {(one["id"], one["rule"], one["severity"]) for one in records if one["state"] == "firing"}
    return Counter((rule, severity) for _, rule, severity in firing)


def _told(counts: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{rule} {severity} ×{number}" for (rule, severity), number in sorted(counts.items())) or "nothing"


def _page(said: dict[str, Counter[tuple[str, str]]], seconds: float) -> str:
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    pages = sum(number for counts in said.values() for (_, severity), number in counts.items() if severity == "page")
    rows = "\n".join(f"| {name} | {_told(counts)} |" for name, counts in said.items())
    return f"""# False alarms

{NOTE}

An agent with every rule, beside work that is heavy and healthy: ranks in a barrier loop, a rank that polls in user
mode, checkpoints, a fork storm, compiles, nearly full memory, container starts; each beside the next one for
{seconds:.0f} s. Severity `page` must not occur; it occurred {pages} times. Measured {when} on Linux
{os.uname().release}, {os.cpu_count()} CPUs, with `make calm`.

| load | alerts that began to fire |
| --- | --- |
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
