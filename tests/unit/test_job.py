"""Declarations and C say the same: a typo in either fails here, without root and without a compiler."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tracer.kernel import readers
from tracer.kernel.job import Options, event_kinds, job, map_shapes, ordered
from tracer.layouts import bpf_folder, constants, layout, layouts
from tracer.probe import Events, Loss, Member, Probe, Table
from tracer.probes import all_probes

EVERY = all_probes()
IN_KERNEL = [probe for probe in EVERY.values() if probe.hooks]
_INCLUDE = re.compile(r'^#include "([\w.]+)"', re.M)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_MAP = re.compile(r"\bMAPPED_ARRAY\((\w+), (\w+), ([^;\n]+)\);")
_PLAIN = re.compile(r"\b(?:BPF_HASH|BPF_STACK_TRACE|BPF_RINGBUF_OUTPUT|BPF_F_TABLE|BPF_TABLE)\(([^;]+)\);")

probes_in_kernel = pytest.mark.parametrize("probe", IN_KERNEL, ids=lambda probe: probe.name)


def text(name: str) -> str:
    """Return a C file with all it includes, comments out."""
    seen: set[str] = set()

    def read(name: str) -> str:
        seen.add(name)
        source = (bpf_folder() / name).read_text()
        parts = [read(included) for included in _INCLUDE.findall(source) if included not in seen]
        return "\n".join([*parts, source])

    return _COMMENT.sub(" ", read(name))


def own_text(probe: Probe) -> str:
    return text(f"{probe.name}.bpf.c")


def reaches(dtype_name: str, path: str, probe: Probe) -> bool:
    dtype = layout(probe.name, dtype_name)
    for name in path.split("."):
        if name not in (dtype.names or ()):
            return False
        dtype = dtype[name]
    return True


@probes_in_kernel
def test_maps_have_a_layout_and_lengths_and_stand_in_the_c_text(probe: Probe) -> None:
    known = constants(probe.name)
    defined = {name: (struct, rows) for struct, name, rows in _MAP.findall(own_text(probe))}
    for declared in probe.maps:
        assert declared.layout in layouts(probe.name), declared
        assert all(axis == "cpu" or axis in known for axis in declared.axes), declared
        assert declared.name in defined, declared
        struct, rows = defined[declared.name]
        assert struct == declared.layout
        lengths = ["NR_CPUS" if axis == "cpu" else axis for axis in declared.axes] or ["1"]
        assert sorted(re.split(r" \* ", rows)) == sorted(lengths), declared
    shared = text("foreshock.bpf.h")
    own = {name for _, name, _ in _MAP.findall(own_text(probe))} - {name for _, name, _ in _MAP.findall(shared)}
    assert own <= {declared.name for declared in probe.maps}, "a map that nobody checks"


@probes_in_kernel
def test_layouts_leave_no_padding_to_the_compiler(probe: Probe) -> None:
    for name, dtype in layouts(probe.name).items():
        assert sum(dtype[field].itemsize for field in dtype.names or ()) == dtype.itemsize or name == "hist_edges", name


@probes_in_kernel
def test_plain_maps_stand_in_the_c_text(probe: Probe) -> None:
    defined = " ".join(_PLAIN.findall(own_text(probe)))
    for name in probe.plain_maps:
        # Some are made two at a time by a macro that appends the half.
        assert re.search(rf"\b{name}\b|\b{re.sub('_[01]$', '', name)}", defined + own_text(probe)), name


@probes_in_kernel
def test_every_hook_has_its_handler_and_every_handler_its_hook(probe: Probe) -> None:
    source = _COMMENT.sub(" ", (bpf_folder() / f"{probe.name}.bpf.c").read_text())
    wanted = {f"{probe.name}_on_{hook.event}" for hook in probe.hooks}
    found = re.findall(r"^handler (\w+)\(u64 \*ctx, u64 now, u32 cpu, struct cpu_row \*row\)", source, re.M)
    assert sorted(found) == sorted(wanted)
    assert source.count("\nhandler ") == len(found), "a handler with another signature"


@probes_in_kernel
def test_what_is_declared_is_used(probe: Probe) -> None:
    source = own_text(probe)
    events = [table.macro for table in probe.tables if isinstance(table, Events)]
    for macro in (*(member.macro for member in probe.members), *events):
        assert re.search(rf"\b{macro}\b", source), f"{macro} is not used"
    reader = Path(readers.__path__[0], f"{probe.reader}.py").read_text() if probe.reader else ""
    for setting in probe.settings:
        assert re.search(rf"\b{setting}\b", source + reader), f"{setting} is not used"
    for _, name in probe.enums:
        assert re.search(rf"\b{name.upper()}\b", source), f"{name} is not used"


@probes_in_kernel
def test_what_c_reads_of_the_kernel_is_declared(probe: Probe) -> None:
    source = own_text(probe)
    declared = {member.macro for member in probe.members}
    for need in ordered([probe], EVERY):
        declared |= {member.macro for member in need.members}
    used = set(re.findall(r"read_kernel\([^;]*?, ([A-Z]+\w*__\w+)", source))
    optional = set(re.findall(r"#ifdef ([A-Z]+\w*__\w+)", source))
    # Members of helpers that only other probes call: bpf/task.bpf.h and bpf/switch.bpf.h list theirs.
    assert used - optional <= declared, used - optional - declared


@probes_in_kernel
def test_the_tables_name_members_of_their_maps(probe: Probe) -> None:
    maps = {declared.name: declared for declared in probe.maps}
    for table in probe.tables:
        if isinstance(table, Events):
            assert table.layout in layouts(probe.name)
            assert layout(probe.name, table.layout).names[0] == "event"  # type: ignore[index]
            continue
        if not table.map:
            assert probe.reader, f"{table.name}: neither a map nor a reader"
            continue
        declared = maps[table.map]
        paths = [*table.keys, *table.counters, *table.gauges, *table.writes, *filter(None, (table.used,))]
        if table.derive is None:
            assert len(table.by) == len(declared.axes), table.name
        for path in paths:
            assert reaches(declared.layout, path, probe), (table.name, path)
        if table.histogram:
            assert layout(probe.name, declared.layout)[table.histogram] == layout("hist", "hist")
    for loss in probe.losses:
        assert isinstance(loss, Loss)
        assert reaches(maps[loss.map].layout, loss.field, probe) if loss.map else not loss.field, loss


@pytest.mark.parametrize("probe", EVERY.values(), ids=EVERY)
def test_declarations_hold_together(probe: Probe) -> None:
    assert bool(probe.hooks) or bool(probe.source) or bool(probe.reader)
    assert all(need in EVERY and need != probe.name for need in probe.requires)
    assert set(probe.filters) <= {"pid", "cgroup"}
    assert not probe.filters or re.search(r"\btask_wanted\(|\bFILTER_TGID\b", own_text(probe))
    names = [table.name for table in probe.tables]
    assert len(names) == len(set(names))
    for table in probe.tables:
        assert table.help and all(column.help for column in table.columns)
        assert not isinstance(table, Table) or not (table.derive and table.named)
    for member in probe.members:
        assert isinstance(member, Member) and "." in member.path and not member.path.startswith("struct")


def test_no_two_probes_share_a_map_or_a_setting_with_another_meaning() -> None:
    layouts_of: dict[str, object] = {}
    settings: dict[str, str] = {}
    for probe in IN_KERNEL:
        for declared in probe.maps:
            assert layouts_of.setdefault(declared.name, declared) == declared
        for setting in probe.settings:
            assert settings.setdefault(setting, probe.name) == probe.name
            assert setting.startswith(probe.name.upper())


def test_the_job_is_plain_values_in_the_order_of_handlers() -> None:
    probes = ordered(EVERY.values(), EVERY)
    places = {probe.name: place for place, probe in enumerate(probes)}
    assert all(places[need] < places[probe.name] for probe in probes for need in probe.requires)
    asked = job(probes, Options(cpu_count=3, clock_cpus=range(2), constants={"SOFTIRQ_THRESHOLD_NS": 7}))
    assert json.loads(json.dumps(asked)) == asked
    assert [probe["name"] for probe in asked["probes"]] == [probe.name for probe in probes if probe.hooks]
    numbers = asked["constants"]
    assert (numbers["NR_CPUS"], numbers["SOFTIRQ_THRESHOLD_NS"], asked["clock_cpus"]) == (3, 7, [0, 1])
    assert all(isinstance(number, int) for number in numbers.values())
    assert asked["maps"]["softirq_rows"]["size"] == layout("softirq", "softirq_row").itemsize
    assert asked["maps"]["softirq_rows"]["fields"]["run"] == layout("hist", "hist").itemsize
    assert asked["plain_maps"][0] == "events"
    for probe in asked["probes"]:
        assert {"name", "requires", "enums", "members", "hooks"} == probe.keys()
        for hook in probe["hooks"]:
            assert {"type", "event", "optional", "everywhere", "hz", "timed", "tracepoints", "args"} == hook.keys()
            assert bool(hook["tracepoints"]) != bool(hook["hz"])


def test_shapes_multiply_out() -> None:
    shapes = map_shapes([EVERY["cpustate"], EVERY["softirq"], EVERY["netdev"]], cpu_count=6)
    assert shapes["cpus"].axes == (("cpu", 6),)
    assert shapes["softirq_rows"].rows == 60
    assert shapes["hist_edges_table"].rows == 1


def test_kinds_of_events_start_at_one_and_are_told_apart() -> None:
    kinds = event_kinds(ordered(EVERY.values(), EVERY))
    assert list(kinds) == list(range(1, len(kinds) + 1))
    macros = [table.macro for _, table in kinds.values()]
    assert len(macros) == len(set(macros)) >= 3
    assert EVERY["runqueue"].tables[1].macro == "RUNQUEUE_WORST_EVENT"  # type: ignore[union-attr]
