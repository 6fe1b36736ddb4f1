"""``python -m tests.twins OUT``: record twins, inject faults into some, have compare judge them; docs/twins.md.

As root; it takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

#: Helpers of the kernel's tests are imported as their own runner has them.
sys.path.append(str(Path(__file__).parents[1]))

from tests.bench.machine import CHECKOUT, describe, say  # noqa: E402
from tests.vm.kernels import Missing  # noqa: E402

from .faults import FAULTS, Fault  # noqa: E402
from .guests import LIMIT_S as _GUESTS_S  # noqa: E402
from .guests import recorded as recorded_guests  # noqa: E402
from .judged import Judged, nothing  # noqa: E402
from .node import made  # noqa: E402
from .page import page, results  # noqa: E402
from .recordings import BEGIN_S, loaded, record_all  # noqa: E402
from .thieves import THIEVES, account_of  # noqa: E402

PAGE = CHECKOUT / "docs" / "twins.md"
QUIET, LOADED = 12, 8
_LOADED_FAULT = "fifo-hog"
#: What would not fit is left out, and said.
_BOUND_S = 15 * 60.0


def main() -> int:
    """Record, inject, compare; exit code 1 if anything is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.twins", description=main.__doc__)
    parser.add_argument("out", type=Path, help="a folder for the recordings")
    parser.add_argument("--write", action="store_true", help="write docs/twins.md")
    parser.add_argument("--again", action="store_true", help="judge the recordings of an earlier run, which are in OUT")
    options = parser.parse_args()
    if os.geteuid() != 0:
        say("twins: not root")
        return 2
    # Everything that was made must be taken away again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began, facts, lacking = time.monotonic(), describe(), list[str]()
    quiet, busy = (options.out / name for name in ("quiet", "loaded"))
    for folder in (quiet, busy):
        folder.mkdir(parents=True, exist_ok=True)
    hog = FAULTS[_LOADED_FAULT]
    healthy, launching = (sorted(folder.glob("node*.fsk")) for folder in (quiet, busy))
    if not options.again:
        with made() as node:
            healthy = record_all(node, quiet, "node", QUIET, [*FAULTS.values()])
            with loaded():
                launching = record_all(node, busy, "node", LOADED, [hog])
    ended = max(path.stat().st_mtime for path in launching)
    facts.append(("recorded until", datetime.fromtimestamp(ended, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")))
    accounts = [account_of(thief, options.out / f"{thief.name}.fsk") for thief in THIEVES]
    pool = ThreadPoolExecutor(1)
    in_time = time.monotonic() - began + _GUESTS_S < _BOUND_S
    # Meanwhile nothing is measured.
    booting = pool.submit(recorded_guests, options.out) if in_time else None
    clusters = [
        _judged("healthy", healthy, None),
        *(_judged(fault.name, [*healthy, quiet / f"{fault.name}.fsk"], fault) for fault in FAULTS.values()),
        _judged("healthy, loaded", launching, None),
        _judged(f"{hog.name}, loaded", [*launching, busy / f"{hog.name}.fsk"], hog),
    ]
    guests = None
    try:
        strangers = booting.result() if booting else []
        if not strangers:
            raise Missing(f"none was up within {_GUESTS_S:.0f} s" if booting else "no time was left")
        guests = _judged("guests", [*healthy, *strangers], None, strangers=len(strangers))
    except Missing as missing:
        lacking.append(f"guests ({missing})")
    facts.append(("it took", f"{(time.monotonic() - began) / 60:.1f} min"))
    if options.write:
        PAGE.write_text(page(clusters, accounts, guests, lacking, facts))
    print(results([*clusters, *([guests] if guests else [])]))
    wrong = [one for one in (*clusters, *([guests] if guests else [])) if list(one.misses())]
    return int(bool(wrong) or not all(one.right for one in accounts))


def _judged(name: str, paths: Sequence[Path], fault: Fault | None, strangers: int = 0) -> Judged:
    """Have ``foreshock compare`` judge a cluster."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tracer", "compare", "--json", *map(str, paths)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    # Of a node that is so busy that intervals come late there may be too little to compare.
    tree = json.loads(done.stdout) if done.stdout else nothing(done.stderr.partition("\n")[0])
    judged = Judged(name, fault, len(paths), tree, BEGIN_S, time.monotonic() - began, strangers)
    say(f"twins: {name}: {judged.verdict}: {'; '.join(judged.misses()) or 'right'}")
    return judged


if __name__ == "__main__":
    raise SystemExit(main())
