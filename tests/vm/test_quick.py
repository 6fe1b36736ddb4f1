"""Two real panics, one seen coming and one not, with everything between the kernel and another host at work."""

from __future__ import annotations

import os

import pytest

from tests.vm.kernels import Kernel, Missing, fetch
from tests.vm.lab import run
from tests.vm.scenarios import QUICK, SCENARIOS
from tests.vm.score import Run

# A guest takes a minute and a half on a quiet machine; its own limit ends it on a busy one, where all may be too late.
pytestmark = pytest.mark.timeout(480)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    if os.geteuid() != 0:
        pytest.skip("not root")
    try:
        return fetch()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", QUICK)
def test_panics_and_was_told(kernel: Kernel, name: str) -> None:
    result = _run(kernel, name)
    assert list(result.misses()) == [], f"see ~/.cache/foreshock-lab/runs/{name}.log"


def _run(kernel: Kernel, name: str) -> Run:
    try:
        return run(SCENARIOS[name], kernel)
    except Missing as missing:
        pytest.skip(str(missing))
