"""``python -m tests.bench [PART…]``: measure, print, and after a whole run write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module

from .machine import CHECKOUT, Missing, describe, say
from .results import Section, checks_table, table

#: In the order of the page; each is a module with ``measure(rounds)``.
PARTS = ("cost", "noise", "agent", "closeup", "start", "leaks", "report")

#: Above this, other work decides the figures.
BUSY_PERCENT = 5

PAGE = CHECKOUT / "docs" / "benchmarks.md"
NOTE = "<!-- Written by `make bench` from what it measured: edit tests/bench, not this page. -->"
INTRODUCTION = (
    "What foreshock costs the node it watches, and how fast it is, each figure beside its target. `make bench` "
    "measures all of it again in about a quarter of an hour, as root, on a machine that should do nothing else then. "
    "It needs gcc, bpftool, Chromium, flamegraph.pl and the distribution's bcc programs, and installs them on Debian "
    "and Ubuntu after saying so."
)


def main() -> int:
    """Measure the parts asked for; exit code 1 if a figure misses its target."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=main.__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side (default: 5)")
    parser.add_argument("--write", action="store_true", help="write the page also after a part of the benchmark")
    options = parser.parse_args()
    if os.geteuid() != 0:
        say("bench: not root")
        return 2
    # Who has installed foreshock has its byte code as well: here the first run of a program leaves it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # What is measured must not outlive the benchmark.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    facts = [
        *describe(),
        ("command", "make bench" if not sys.argv[1:] else f"make bench BENCH={shlex.quote(' '.join(sys.argv[1:]))}"),
    ]
    sections: list[Section] = []
    for name in options.parts or PARTS:
        part: Callable[[int], Section] = import_module(f".{name}", __package__).measure
        try:
            sections.append(part(options.rounds))
        except Missing as missing:
            say(f"bench: {missing}")
            return 2
    text = _page(facts, sections)
    print(text)
    if options.write or not options.parts:
        PAGE.write_text(text)
        say(f"bench: {PAGE}")
    checks = [check for section in sections for check in section.checks]
    return int(any(check.met is False for check in checks))


def _page(facts: list[tuple[str, str]], sections: list[Section]) -> str:
    checks = [check for section in sections for check in section.checks]
    parts = [
        "# Benchmarks",
        NOTE,
        INTRODUCTION,
        checks_table(checks),
        table(("machine", ""), facts).replace("---:", "---"),
    ]
    busy = float(dict(facts)["busy before the start"].split()[0])
    if busy > BUSY_PERCENT:
        parts.insert(3, f"**The machine was {busy:.0f} % busy with something else: take these figures for nothing.**")
    for section in sections:
        parts += [f"## {section.title}", *section.blocks]
    return "\n\n".join(part if part.startswith(("|", "#")) else textwrap.fill(part, 120) for part in parts) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
