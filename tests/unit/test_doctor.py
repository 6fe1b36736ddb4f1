"""What doctor says about given facts, and how it says it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tracer.commands.doctor import doctor
from tracer.kernel import capability
from tracer.kernel.capability import Facts
from tracer.kernel.checks import BE_ROOT, Check, can_run, judge
from tracer.kernel.trials import TRIALS

GOOD: dict[str, Any] = {
    "release": "6.8.0",
    "trials": dict.fromkeys(TRIALS, ""),
    "lockdown": "none",
    "has_securityfs": True,
    "unprivileged_bpf_disabled": 2,
    "perf_event_paranoid": 2,
    "jit_enabled": 1,
    "jit_limit": 528482304,
    "interpreter": "/usr/bin/python3",
    "bcc_version": "0.26.0",
    "watchdog": 1,
    "nmi_watchdog": 1,
    "watchdog_thresh": 10,
    "clocksource": "tsc",
    "cgroups": "v2",
}
NOBODY: dict[str, Any] = {
    "uid": 65534,
    "capabilities": frozenset(),
    "trials": dict.fromkeys(TRIALS, "Operation not permitted"),
    "memlock_bytes": 8 << 20,
    "tracefs": "available",
    "jit_limit": None,
}


def check(name: str, **facts: Any) -> Check:
    (found,) = [check for check in judge(Facts(**{**GOOD, **facts})) if check.name == name]
    return found


def test_a_good_node_passes_everything() -> None:
    checks = judge(Facts(**GOOD))
    assert [check for check in checks if check.status != "ok"] == []
    assert can_run(checks)


def test_an_ordinary_user_is_told_to_be_root() -> None:
    checks = judge(Facts(**{**GOOD, **NOBODY}))
    assert not can_run(checks)
    assert checks[0].status == "fail" and checks[0].fix == BE_ROOT


@pytest.mark.parametrize(
    ("name", "facts", "status", "words"),
    [
        ("user", {"capabilities": frozenset({"CAP_BPF", "CAP_PERFMON"}), "uid": 7}, "ok", "uid 7"),
        ("user", {"capabilities": frozenset({"CAP_BPF"})}, "fail", "CAP_PERFMON"),
        ("kernel", {"architecture": "mips"}, "fail", "mips"),
        ("BTF", {"has_btf": False}, "fail", "vmlinux"),
        ("lockdown", {"lockdown": "integrity"}, "ok", "integrity"),
        ("lockdown", {"lockdown": "confidentiality"}, "fail", "may not read"),
        ("lockdown", {"lockdown": None, "has_securityfs": False}, "ok", "not known"),
        ("ring buffer", {"trials": {**GOOD["trials"], "ring buffer": "Invalid argument"}}, "fail", "Invalid"),
        ("clock", {"trials": {}}, "warn", "not tried"),
        ("memlock limit", {"memlock_bytes": 65536}, "ok", "64 KiB"),
        ("memlock limit", {"memlock_bytes": 65536, "trials": {"beyond memlock": "no"}}, "ok", "may raise"),
        (
            "memlock limit",
            {
                "memlock_bytes": 65536,
                "trials": {"beyond memlock": "no", "mapped array": ""},
                "capabilities": frozenset({"CAP_SYS_ADMIN"}),
            },
            "fail",
            "count in it",
        ),
        ("memory locking", {"capabilities": frozenset(), "memlock_bytes": 1}, "warn", "not allowed"),
        ("BPF JIT", {"jit_enabled": 0}, "warn", "off"),
        ("BPF JIT", {"jit_enabled": None}, "warn", "not readable"),
        ("tracefs", {"tracefs": "available"}, "ok", "not mounted; not needed"),
        ("tracefs", {"tracefs": "missing"}, "ok", "not in this kernel"),
        ("bcc", {"interpreter": None, "bcc_version": None, "bcc_error": "bcc is not installed"}, "fail", "installed"),
        ("bcc", {"bcc_version": None, "bcc_given_up_s": 20}, "warn", "not known: to import it takes longer than 20 s"),
        ("bcc", {"bcc_version": "0.25.0"}, "warn", "0.26 to 0.37"),
        ("bcc", {"bcc_version": "0.37.1"}, "ok", "0.37.1"),
        ("bcc", {"bcc_version": "0.38.0"}, "warn", "0.38.0"),
        ("bcc", {"bcc_version": "master"}, "warn", "master"),
        ("watchdog", {"watchdog": 0}, "warn", "off"),
        ("watchdog", {"watchdog": None}, "warn", "none"),
        ("watchdog", {"nmi_watchdog": 0}, "ok", "after 20 s; hard lockup detector off"),
        ("clock source", {"clocksource": "hpet"}, "warn", "hpet"),
        ("cgroups", {"cgroups": None}, "warn", "no hierarchy"),
        ("pid namespace", {"own_pid_namespace": True}, "warn", "container"),
        ("time namespace", {"own_time_namespace": True}, "fail", "the kernel's times"),
        ("user", {"own_user_namespace": True}, "fail", "not for the node"),
    ],
)
def test_judges(name: str, facts: dict[str, Any], status: str, words: str) -> None:
    found = check(name, **facts)
    assert (found.status, words in found.found) == (status, True), found


def test_whatever_fails_has_a_fix() -> None:
    worst = Facts(uid=7, capabilities=frozenset(), architecture="vax", has_btf=False, lockdown="confidentiality")
    for facts in (worst, Facts(**{**GOOD, **NOBODY})):
        failed = [check for check in judge(facts) if check.status == "fail"]
        assert failed and all(check.fix and "\n" not in check.fix for check in failed)


def test_a_slow_import_is_no_broken_bcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(capability, "find_interpreter", lambda: str(slow))
    monkeypatch.setattr(capability, "_BCC_SECONDS", 1)
    facts = Facts(**{**GOOD, "bcc_version": None, **capability._bcc()})
    (found,) = [check for check in judge(facts) if check.name == "bcc"]
    assert found.status == "warn" and "reinstall" not in found.fix and "not known" in found.found


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*options: str, **facts: Any) -> Any:
        monkeypatch.setattr(capability, "read_facts", lambda: Facts(**{**GOOD, **facts}))
        return CliRunner().invoke(doctor, options)

    return run


def test_prints_words_within_80_columns_and_exits_0(said: Any) -> None:
    result = said()
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "ok    user            root, with all capabilities needed"
    assert lines[-1] == "foreshock can run here: no failures, no warnings."
    assert all(len(line) <= 80 for line in lines)


def test_exits_3_with_the_whole_command_on_one_line(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/env", "doctor", "--json"])
    result = said(**NOBODY)
    assert result.exit_code == 3
    assert "      fix: run as root: sudo /usr/bin/env doctor --json" in result.output.splitlines()
    assert "foreshock cannot run here: 5 failures, " in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_names_from_the_node_cannot_steer_the_terminal(said: Any) -> None:
    result = said(clocksource="tsc\x1b[2J\nok    user", bcc_version=None, bcc_error="\x1b]0;owned\x07" * 30)
    assert "\x1b" not in result.output and "\\x1b[2J" in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_json_says_the_same(said: Any) -> None:
    result = said("--json", clocksource="t\x1b\ud800", has_btf=False)
    found = json.loads(result.output)
    assert result.exit_code == 3 and found["ok"] is False
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["BTF"]["status"] == "fail" and by_name["BTF"]["fix"]
    assert "\x1b" not in result.output
