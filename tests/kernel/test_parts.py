"""What this kernel lacks is listed by name, and the rest runs: doctor and probes agree with the kernel's types."""

from __future__ import annotations

import json
import re

import pytest
from kernel.command import foreshock

from tracer.kernel.loader.btf import Btf
from tracer.probe import Tracepoint
from tracer.probes import all_probes


@pytest.fixture(scope="module")
def lacking() -> set[str]:
    btf = Btf.running_kernel()
    hooks = [hook for probe in all_probes().values() for hook in probe.hooks if isinstance(hook, Tracepoint)]
    return {hook.name for hook in hooks if not btf.tracepoint(hook.event)}


def test_doctor_lists_the_tracepoints(lacking):
    checks = {check["name"]: check for check in json.loads(foreshock("doctor", "--json").stdout)["checks"]}
    found = checks["tracepoints"]["found"]
    assert {word.strip(",") for word in found.split() if ":" in word.rstrip(":,")} == lacking


def test_probes_lists_all_of_them(lacking):
    probes = {
        probe["name"]: probe for probe in json.loads(foreshock("probes", "--json", "--no-measure").stdout)["probes"]
    }
    remark = probes["precursors"]["remark"]
    assert probes["precursors"]["available"] is True
    for hook in all_probes()["precursors"].hooks:
        assert (hook.event in re.findall(r"\w+", remark)) == (hook.name in lacking)
