"""The probes are found by walking their package, by name and by alias."""

from __future__ import annotations

import pytest

from tracer import probes
from tracer.errors import UsageError
from tracer.probe import Probe


@pytest.fixture
def known(monkeypatch):
    softirq = Probe(name="softirq", summary="", tier="light", tables=(), aliases=("si",))
    monkeypatch.setattr(probes, "all_probes", lambda: {"softirq": softirq})
    return softirq


def test_walks_its_package():
    found = probes.all_probes()
    assert list(found) == sorted(found)
    assert all(name == probe.name for name, probe in found.items())


def test_no_name_or_alias_is_given_twice():
    found = probes.all_probes()
    names = [*found, *(alias for probe in found.values() for alias in probe.aliases)]
    assert len(names) == len(set(names))


def test_finds_by_name_and_alias(known):
    assert probes.find_probe("softirq") is known
    assert probes.find_probe("si") is known


def test_suggests_the_nearest_name(known):
    with pytest.raises(UsageError, match="^unknown probe 'softrq'; did you mean 'softirq'\\?$"):
        probes.find_probe("softrq")
    with pytest.raises(UsageError, match="^unknown probe 'zzz'$"):
        probes.find_probe("zzz")
