"""Which probes run: named ones must, automatic ones may, and what they need comes along."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tracer.collect.choice import choose
from tracer.errors import UsageError
from tracer.probes import all_probes

LIGHT = {name for name, probe in all_probes().items() if probe.tier == "light"}
DEEP = all_probes().keys() - LIGHT


def names(text: str, *, deep: bool = False, filters: Iterable[str] = ()) -> list[str]:
    return [probe.name for probe in choose(text, deep=deep, filters=filters).probes]


def test_auto_is_every_light_probe_and_deep_adds_the_others() -> None:
    assert set(names("auto")) == LIGHT
    assert set(names("auto", deep=True)) == LIGHT | DEEP
    assert choose("auto", deep=True, filters=()).named == set()


def test_a_name_brings_what_it_requires_before_it_and_our_own_cost() -> None:
    assert names("runqueue_cgroup") == ["cpustate", "runqueue", "runqueue_cgroup", "agent", "jobs"]
    assert choose("runqueue_cgroup", deep=False, filters=()).named == {"runqueue_cgroup"}


def test_names_aliases_and_auto_mix_and_nothing_comes_twice() -> None:
    assert names(" runqlat, softirqs ,runqueue,,cpustate") == ["cpustate", "runqueue", "softirq", "agent", "jobs"]
    assert choose("runqlat", deep=False, filters=()).named == {"runqueue"}
    mixed = names("oncpu,auto")
    assert set(mixed) == LIGHT | {"oncpu"}
    assert len(mixed) == len(set(mixed))


def test_deep_adds_no_light_probe_that_was_not_asked_for() -> None:
    needed = {need for name in DEEP for need in all_probes()[name].requires}
    assert set(names("softirq", deep=True)) == {"softirq", "cpustate", "agent", "jobs"} | DEEP | needed


@pytest.mark.parametrize("filter", ["pid", "cgroup"])
def test_auto_leaves_out_what_can_not_be_filtered_and_says_why(filter: str) -> None:
    choice = choose("auto", deep=True, filters=[filter])
    able = {name for name, probe in all_probes().items() if filter in probe.filters}
    run = {probe.name for probe in choice.probes}
    assert able <= run
    assert run - able == {"agent", "jobs"} | {need for name in able for need in all_probes()[name].requires} - able
    assert choice.left_out.keys() == all_probes().keys() - run
    assert all("can't be limited to a" in reason for reason in choice.left_out.values())


def test_cpus_leave_out_what_is_no_kernel_program() -> None:
    choice = choose("auto", deep=False, filters=["cpus"])
    polled = {name for name, probe in all_probes().items() if probe.source and probe.tier == "light"}
    why = "can't be limited to CPUs: its counters are the whole node's"
    assert "netdev" in polled and choice.left_out == dict.fromkeys(polled, why)
    assert {probe.name for probe in choice.probes} == LIGHT - polled


@pytest.mark.parametrize("name", ["softirq", "netdev"])
def test_a_named_probe_that_can_not_be_filtered_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} can't be limited to a process: what it counts ") as refused:
        choose(f"auto,{name}", deep=False, filters=["pid"])
    assert refused.value.hint


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="^unknown probe 'runqeue'; did you mean 'runqueue'"):
        choose("softirq,runqeue", deep=False, filters=())


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_no_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no probe"):
        choose(text, deep=False, filters=())
