"""What holds of every rule: it can be read, it can be asked, and its tables exist."""

from __future__ import annotations

import re

import pytest

from tracer.alerts.rule import Rule
from tracer.alerts.rules import rules
from tracer.probes import all_probes

RULES = list(rules().values())
TABLES = {(probe.name, table.name) for probe in all_probes().values() for table in probe.tables}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_can_be_read(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert "Severity" in rule.help, "says how bad it is from where on"
    assert rule.title and rule.next and "\n" not in rule.title + rule.next
    assert not rule.title.endswith(".") and not rule.next.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_its_tables_exist(rule: Rule) -> None:
    told = {*rule.needs, *rule.wants}
    assert told and told | set(rule.history) <= TABLES
    assert set(rule.history) <= told
