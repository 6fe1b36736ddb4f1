"""Numbers on the page are written as everywhere else: its formats are held to those of ``tracer.units``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tracer import units

_EDGES = [0.5, 1, 2, 10, 99.5, 100, 999, 999.4, 999.6, 1000]


def test_the_page_writes_numbers_as_reports_in_text_do(npm, web: Path, tmp_path: Path):
    random = np.random.default_rng(8)
    values = [0.0, *_EDGES, *(10 ** random.uniform(-3, 15, 300)).tolist()]
    shares = [0.0, 1e-5, 0.5, 0.99999, 1.0, *random.uniform(0, 1, 100).tolist()]
    ratios = [0.0, *(1 / one for one in _EDGES), *_EDGES, *(10 ** random.uniform(-4, 4, 300)).tolist()]
    ours = {
        "duration": [units.duration(one) for one in values],
        "rate": [units.rate(one) for one in values],
        "count": [units.count(int(one)) for one in values],
        "percent": [units.percent(one) for one in shares],
        "change": [units.change(8, 8 * one) for one in ratios],
    }
    script = f"""
      import * as format from "{web}/src/format.ts";
      import {{ writeFileSync }} from "node:fs";
      const [values, shares, ratios] = {json.dumps([values, shares, ratios])};
      const told = {{
        duration: values.map(format.duration), rate: values.map(format.rate),
        count: values.map((one) => format.count(Math.trunc(one))), percent: shares.map(format.percent),
        change: ratios.map((one) => format.change(8, 8 * one)),
      }};
      writeFileSync("{tmp_path}/told.json", JSON.stringify(told));
    """
    (web / "numbers.ts").write_text(script)
    npm("exec", "--", "esbuild", "numbers.ts", "--bundle", "--platform=node", f"--outfile={tmp_path}/numbers.cjs")
    npm("exec", "--", "node", f"{tmp_path}/numbers.cjs")
    theirs = json.loads((tmp_path / "told.json").read_text())
    for what, told in ours.items():
        assert theirs[what] == told, what
