"""One C text out of many files: every file once, lines that keep their names, programs that handlers share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tracer.kernel.loader.source import assemble, programs_of


def hook(event: str, *, everywhere: bool = False, hz: int = 0, type: str = "btf", timed: bool = True) -> dict[str, Any]:
    tracepoints = [] if hz else [event]
    return {
        "event": event,
        "type": type,
        "tracepoints": tracepoints,
        "hz": hz,
        "everywhere": everywhere,
        "timed": timed,
    }


def probe(name: str, *hooks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "hooks": list(hooks)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.h").write_text("base;\n")
    (tmp_path / "common.h").write_text('/* first */\n#include "base.h"\ncommon;\n')
    (tmp_path / "one.bpf.c").write_text('#include "common.h"\n#include <linux/bpf.h>\n#include "base.h"\none;\n')
    (tmp_path / "two.bpf.c").write_text('two_before;\n#include "common.h"\ntwo_after;\n')
    return tmp_path


def places(text: str) -> dict[str, tuple[str, int]]:
    """Return the file and line at which the compiler places each line of the text."""
    found = {}
    file, number = "", 0
    for line in text.splitlines():
        named = re.match(r'#line (\d+) "([^"]+)"', line)
        if named:
            file, number = named[2], int(named[1])
            continue
        found[line.strip()] = (file, number)
        number += 1
    return found


def test_each_file_comes_once_and_keeps_its_lines(folder: Path) -> None:
    probes = [probe("one", hook("a")), probe("two", hook("a"))]
    text = assemble(str(folder), probes, programs_of(probes))
    assert text.count("base;") == text.count("common;") == 1
    assert text.index("base;") < text.index("common;") < text.index("one;") < text.index("two_before;")
    assert '#include "' not in text and "#include <linux/bpf.h>" in text
    where = places(text)
    assert where["base;"] == ("base.h", 1)
    assert where["common;"] == ("common.h", 3)
    assert where["one;"] == ("one.bpf.c", 4)
    assert where["two_after;"] == ("two.bpf.c", 3)
    assert where["int on_a(u64 *ctx)"][0] == "attach points"


def test_a_file_without_a_last_newline_swallows_nothing(folder: Path) -> None:
    (folder / "base.h").write_text("base;")
    (folder / "one.bpf.c").write_text('#include "common.h"\none;')
    probes = [probe("one", hook("a")), probe("two", hook("b"))]
    where = places(assemble(str(folder), probes, programs_of(probes)))
    assert where["common;"] == ("common.h", 3)
    assert where["two_before;"] == ("two.bpf.c", 1)


def test_handlers_of_one_event_share_a_program_in_order(folder: Path) -> None:
    programs = programs_of([probe("one", hook("a"), hook("b")), probe("two", hook("a"))])
    assert [(program.name, program.handlers) for program in programs] == [("on_a", ["one", "two"]), ("on_b", ["one"])]
    text = programs[0].text()
    assert text.index("one_on_a(ctx, now, cpu, row);") < text.index("two_on_a(ctx, now, cpu, row);")


def test_the_clock_is_read_only_where_a_handler_asks_for_the_time() -> None:
    (untimed,) = programs_of([probe("one", hook("a", timed=False)), probe("two", hook("a", timed=False))])
    (timed,) = programs_of([probe("one", hook("a", timed=False)), probe("two", hook("a"))])
    assert "bpf_ktime_get_ns" not in untimed.text()
    assert timed.text().count("bpf_ktime_get_ns") == 1


def test_cpus_left_out_are_skipped_but_by_handlers_that_run_everywhere() -> None:
    (program,) = programs_of([probe("one", hook("a", everywhere=True)), probe("two", hook("a"))])
    lines = [line.strip() for line in program.text().splitlines()]
    call = lines.index("two_on_a(ctx, now, cpu, row);")
    assert lines[call - 1] == "if (!row->untraced)"
    assert "untraced" not in lines[lines.index("one_on_a(ctx, now, cpu, row);") - 1]


def test_clocks_of_different_rates_are_different_programs() -> None:
    clocks = [hook("clock", hz=hz, type="clock") for hz in (49, 5, 49)]
    programs = programs_of([probe(name, clock) for name, clock in zip(("one", "two", "three"), clocks, strict=True)])
    assert [(program.name, program.hz, program.handlers) for program in programs] == [
        ("on_clock_49hz", 49, ["one", "three"]),
        ("on_clock_5hz", 5, ["two"]),
    ]
    assert "one_on_clock(ctx, now, cpu, row);" in programs[0].text()


def test_a_probe_without_hooks_left_brings_no_text(folder: Path) -> None:
    probes = [probe("missing"), probe("one", hook("a"))]
    assert "one;" in assemble(str(folder), probes, programs_of(probes))
