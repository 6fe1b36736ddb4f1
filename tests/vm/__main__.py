"""``python -m tests.vm [SCENARIO…]``: let kernels panic, print what was seen before; all of them: docs/panic-lab.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from tests.bench.machine import describe

from .kept import keep, kept
from .kernels import Missing, fetch
from .lab import run
from .page import page, results
from .receiver import CHECKOUT
from .scenarios import SCENARIOS

PAGE = CHECKOUT / "docs" / "panic-lab.md"


def main() -> int:
    """Run the scenarios asked for, one after the other; exit code 1 if a run misses a goal.

    The page has the latest run of each scenario, also those of earlier times.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.vm", description=main.__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO",
                        help=f"of {', '.join(SCENARIOS)}")  # fmt: skip
    parser.add_argument("--suite", default="bookworm", help="Debian's release whose kernel it is (default: bookworm)")
    parser.add_argument("--write", action="store_true", help="write the page also after a part of the lab")
    parser.add_argument("--page", action="store_true", help="write the page from the latest runs, and run nothing")
    options = parser.parse_args()
    if os.geteuid() != 0:
        _say("lab: not root")
        return 2
    # A guest must not outlive the lab.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.page:
        PAGE.write_text(page(kept(), describe()))
        return 0
    runs = []
    try:
        kernel = fetch(options.suite)
        for name in options.scenarios or SCENARIOS:
            _say(f"lab: {name}: {SCENARIOS[name].fault}")
            facts = describe()
            runs.append(run(SCENARIOS[name], kernel, _measured(facts)))
            keep(runs[-1])
            _say(f"lab: {name}: {'; '.join(runs[-1].misses()) or 'every goal met'}")
            if options.write or not options.scenarios:
                PAGE.write_text(page(kept(), facts))
    except Missing as missing:
        _say(f"lab: {missing}")
        return 2
    print(results(runs))
    return int(any(list(one.misses()) for one in runs))


def _measured(facts: list[tuple[str, str]]) -> str:
    of = dict(facts)
    return f"{of['date']}, foreshock {of['foreshock']}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
