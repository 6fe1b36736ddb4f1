"""probes: every probe with what it costs here, quickly; and the plain list where nothing can be known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tracer.probes import all_probes

SECONDS = 12


def probes(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracer", "probes", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def measured() -> tuple[dict, float]:
    began = time.monotonic()
    done = probes("--json")
    assert done.returncode == 0, done.stderr
    return {probe["name"]: probe for probe in json.loads(done.stdout)["probes"]}, time.monotonic() - began


def test_lists_every_probe_in_time(measured):
    found, seconds = measured
    assert found.keys() == all_probes().keys()
    assert seconds < SECONDS


def test_measures_what_handlers_add(measured):
    found, _ = measured
    # An empty handler costs nothing, an update of a row some tens of nanoseconds, whatever the machine.
    for name in ("cpustate", "runqueue", "softirq"):
        assert found[name]["available"] is True
        assert found[name]["events"] > 100
        assert 1 < found[name]["ns_per_event"] < 2000
    # Nothing runs in the kernel for these.
    for name in ("agent", "netdev"):
        assert found[name]["ns_per_event"] is None


def test_text_fits_80_columns_and_names_aliases():
    done = probes("--no-measure")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "as runqlat, runqslower" in done.stdout


def test_without_bcc_the_list_is_still_there():
    done = probes(FORESHOCK_PYTHON="/nonexistent")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "isn't known: FORESHOCK_PYTHON=/nonexistent is no Python that has bcc" in text
    assert all(name in text for name in all_probes())
