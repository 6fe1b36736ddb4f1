"""Attaching: what a kernel can't carry, what breaks the loader in any way, and what comes out of rings and arrays."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel.command import CHECKOUT, assert_fails, children, foreshock, leftovers
from kernel.traced import counted
from kernel.workload import Task

from tracer import layouts
from tracer.collect.collector import Collector
from tracer.errors import ProbeUnavailableError, UnavailableError
from tracer.kernel import child, cpus
from tracer.kernel import job as job_module
from tracer.kernel import session as session_module
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.job import Options, job, ordered
from tracer.kernel.loading import LoaderError, run_loader
from tracer.kernel.ring import Ring
from tracer.kernel.session import Session, attach
from tracer.probe import Events, Map, Member, Probe, Tracepoint
from tracer.probes import all_probes
from tracer.window import Window

PYTHON = "/usr/bin/python3"
SWITCH = Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *"))
COUNT = "rows->runs++;"

_HEADER = '#include "cpustate.h"\n\nstruct {name}_row {{\n\tu64 runs;\n\tu64 other;\n}};\n'
_SOURCE = """#include "foreshock.bpf.h"
#include "{name}.h"
{before}
MAPPED_ARRAY({struct}, {name}_rows, NR_CPUS);

handler {name}_on_{event}(u64 *ctx, u64 now, u32 cpu, struct cpu_row *row)
{{
	struct {struct} *rows = {name}_rows.lookup(&cpu);

	if (!rows)
		return;
	{body}
}}
"""


Make = Callable[..., Probe]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that writes the C files of a probe next to the real ones and returns its declaration."""
    folder = tmp_path / "bpf"
    shutil.copytree(layouts.bpf_folder(), folder)
    monkeypatch.setattr(layouts, "bpf_folder", lambda: folder)
    monkeypatch.setattr(job_module, "bpf_folder", lambda: folder)

    def _make(name: str, body: str = COUNT, *, before: str = "", struct: str = "", **declared: object) -> Probe:
        hooks = declared.pop("hooks", (SWITCH,))
        assert isinstance(hooks, tuple)
        (folder / f"{name}.h").write_text(_HEADER.format(name=name) + str(declared.pop("header", "")))
        values = {"name": name, "struct": struct or f"{name}_row", "event": hooks[0].event}
        (folder / f"{name}.bpf.c").write_text(_SOURCE.format(**values, body=body, before=before))
        maps = (Map(f"{name}_rows", f"{name}_row", ("cpu",)),)
        more: dict[str, Any] = {"summary": "", "tier": "light", "tables": (), "maps": maps, **declared}
        return Probe(name=name, hooks=hooks, **more)

    return _make


def options(**constants: int) -> Options:
    return Options(cpus.possible_count(), cpus.online(), constants=constants)


def runs(session: Session, name: str) -> int:
    """Let the CPU switch, then tell how often the probe's handler has run."""
    for _ in range(20):
        time.sleep(0.002)
    return int(session.array(f"{name}_rows")["runs"].sum())


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """No descriptor and no child of ours outlives a test."""
    descriptors, before = sorted(os.listdir("/proc/self/fd")), leftovers()
    yield
    assert sorted(os.listdir("/proc/self/fd")) == descriptors
    assert leftovers() <= before


# What this kernel can't carry


def test_what_the_kernel_lacks_is_refused_with_the_reason_and_the_others_run(make: Make) -> None:
    gone = Tracepoint("sched:sched_no_such", optional=True)
    probes = [
        make("fine", hooks=(SWITCH, gone), before="handler fine_on_sched_no_such(u64 *c, u64 n, u32 i, void *r) {}"),
        make("unhooked", hooks=(Tracepoint("sched:sched_no_such"),)),
        make("changed", hooks=(Tracepoint("sched:sched_switch", ("bool", "struct rq *")),)),
        make("memberless", members=(Member("task_struct.no_such", otherwise=("task_struct.nor_this",)),)),
        make("enumless", enums=(("cgroup_subsys_id", "no_such_id"),)),
        make("dependent", requires=("memberless",)),
        make("bare", hooks=(gone,)),
        make("spare", members=(Member("task_struct.no_such", optional=True),)),
    ]
    with attach(probes, options()) as session:
        assert session.refused == {
            "unhooked": "this kernel has no tracepoint sched_no_such",
            "changed": "tracepoint sched_switch has other arguments (bool, struct task_struct *, struct task_struct *, "
            "unsigned int) than those this version knows (bool, struct rq *)",
            "memberless": "this kernel has no task_struct.no_such or task_struct.nor_this",
            "enumless": "this kernel's enum cgroup_subsys_id has no no_such_id",
            "dependent": "needs memberless, which can't run here",
            "bare": "this kernel has no tracepoint sched_no_such",
        }
        assert session.missing == [("fine", "this kernel has no tracepoint sched_no_such")]
        assert [probe.name for probe in session.probes] == ["fine", "spare"]
        assert runs(session, "fine") > 10 and runs(session, "spare") > 10


def test_when_nothing_can_run_it_says_why(make: Make) -> None:
    with pytest.raises(ProbeUnavailableError) as refused:
        attach([make("unhooked", hooks=(Tracepoint("sched:sched_no_such"),))], options())
    assert refused.value.message == "unhooked: this kernel has no tracepoint sched_no_such."


BIG_STACK = (
    "volatile u64 big[100];\n\tfor (int i = 0; i < 100; i++)\n\t\tbig[i] = now + i;\n\trows->runs += big[now % 99];"
)
UNBOUNDED = "rows->runs = *(u64 *)((void *)rows + (now & 0xffffff));"


def test_one_that_breaks_the_loader_costs_only_itself_and_those_that_need_it(make: Make) -> None:
    probes = [
        make("fine"),
        make("broken", "rows->runs = no_such_name;"),
        make("deepstack", BIG_STACK),
        make("unbounded", UNBOUNDED),
        make("otherwise", struct="otherwise_c", before="struct otherwise_c {\n\tu64 other;\n\tu64 runs;\n};"),
        make("wider", struct="wider_c", before="struct wider_c {\n\tu64 runs, other, more;\n};"),
        make("dependent", requires=("fine", "broken")),
    ]
    with attach(probes, options()) as session:
        refused = session.refused
        assert runs(session, "fine") > 10
        assert [probe.name for probe in session.probes] == ["fine"]
    assert refused.keys() == {probe.name for probe in probes[1:]}
    assert "bcc could not compile" in refused["broken"] and "no_such_name" in refused["broken"]
    assert "broken.bpf.c:" in refused["broken"]
    assert "stack" in refused["deepstack"].lower()
    assert "the kernel refused program on_sched_switch: Permission denied" in refused["unbounded"]
    assert refused["otherwise"] == "layout of map otherwise_rows: runs at byte 8 compiled, 0 read from the header"
    assert refused["wider"] == "layout of map wider_rows: 24 bytes compiled, 16 read from the header"
    assert refused["dependent"] == "needs broken, which can't run here"
    assert all("\n" not in reason and len(reason) < 600 for reason in refused.values())


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of foreshock with one more probe, which does not compile."""
    for folder in ("tracer", "bpf"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tracer/probes/broken.py").write_text(
        '"""Broken.\n\nOverhead: none\nCaveat: none\n"""\nfrom tracer.probe import Map, Probe, Tracepoint\n'
        'PROBE = Probe(name="broken", summary="breaks", tier="light", tables=(), '
        'hooks=(Tracepoint("sched:sched_switch"),), maps=(Map("broken_rows", "broken_row", ("cpu",)),))\n'
    )
    (tmp_path / "bpf/broken.h").write_text(_HEADER.format(name="broken"))
    text = _SOURCE.format(name="broken", struct="broken_row", event="sched_switch", body="no_such_name++;", before="")
    (tmp_path / "bpf/broken.bpf.c").write_text(text)
    return tmp_path


def test_a_named_probe_that_breaks_ends_it(installed: Path, tmp_path: Path) -> None:
    output, path = str(tmp_path / "x.fsk"), {"PYTHONPATH": str(installed)}
    named = foreshock("record", "--for", "200ms", "-o", output, "--probes", "cpustate,broken", **path)
    assert_fails(named, 3, "broken: bcc could not compile", "no_such_name")
    assert not Path(output).exists()
    done = foreshock("record", "--for", "200ms", "-o", output, "--probes", "broken", **path)
    assert_fails(done, 3, "no_such_name")


# What may happen to the loader


def test_without_bcc_it_says_what_to_install(tmp_path: Path) -> None:
    done = foreshock("record", "--for", "1s", "-o", str(tmp_path / "x.fsk"), FORESHOCK_PYTHON=sys.executable)
    assert_fails(
        done, 3, f"FORESHOCK_PYTHON={sys.executable} is no Python that has bcc", "apt-get install python3-bpfcc"
    )
    done = foreshock("record", "--for", "1s", "-o", str(tmp_path / "x.fsk"), FORESHOCK_PYTHON="/no/such/python")
    assert_fails(done, 3, "FORESHOCK_PYTHON=/no/such/python is no Python that has bcc")


def nothing(maps: dict[str, int]) -> None:
    """Fill no map."""


def test_a_loader_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_START", "import time; time.sleep(100)")
    began = time.monotonic()
    with pytest.raises(LoaderError, match="^the loader did not finish in time"):
        run_loader(job([all_probes()["cpustate"]], options()), PYTHON, nothing, timeout=0.5)
    assert time.monotonic() - began < 10


def test_a_loader_that_hangs_is_not_tried_again_for_each_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_START", "import time; time.sleep(100)")
    monkeypatch.setattr(session_module, "ATTACH_SECONDS", 0.5)
    began = time.monotonic()
    with pytest.raises(LoaderError, match="^the loader did not finish in time"):
        attach([all_probes()[name] for name in ("cpustate", "softirq", "hardirq", "napi")], options())
    assert time.monotonic() - began < 2


def test_trials_of_single_probes_share_the_time_for_attaching(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ATTACH_SECONDS", 2.5)
    broken = [make(f"broken{number}", body="no_such_name++;") for number in range(12)]
    began = time.monotonic()
    with pytest.raises(LoaderError):
        attach(broken, options())
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("import os; os._exit(7)", "ended with status 7 while"),
        ("print('LLVM ERROR: out of registers', flush=True); import os; os.abort()", "by signal 6 while .*registers$"),
        ("raise ValueError('a\\n\\x1b[2Jb')", "ended with status 1 while .*ValueError: a"),
    ],
)
def test_a_loader_that_ends_early_leaves_its_last_words(
    monkeypatch: pytest.MonkeyPatch, start: str, words: str
) -> None:
    monkeypatch.setattr(child, "_START", start)
    with pytest.raises(LoaderError, match=words) as ended:
        run_loader(job([all_probes()["cpustate"]], options()), PYTHON, nothing)
    assert "\n" not in ended.value.message and ended.value.hint


def test_a_loader_killed_half_way_takes_everything_along() -> None:
    seen: list[str] = []

    def kill(maps: dict[str, int]) -> None:
        seen.extend(maps)
        for pid in children():
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(LoaderError, match="^the loader ended by signal 9"):
        run_loader(job([all_probes()["cpustate"]], options()), PYTHON, kill)
    assert "cpus" in seen


def test_an_error_while_filling_passes_and_leaves_nothing() -> None:
    def fail(maps: dict[str, int]) -> None:
        raise OSError(12, "no memory")

    with pytest.raises(OSError, match="no memory"):
        run_loader(job([all_probes()["cpustate"]], options()), PYTHON, fail)


def test_an_interpreter_that_went_away_is_an_error_of_one_line() -> None:
    with pytest.raises(UnavailableError, match="^can't run /no/such: No such file or directory$"):
        run_loader(job([all_probes()["cpustate"]], options()), "/no/such", nothing)


# The ring buffer

TOLD = """
struct ringer_told {
	struct event event;
	u64 number;
	u64 pad[124];
};
"""
#: Told by a system call that there is not: its number is what is told. The bit DISCARD takes it back.
TELL = """u64 number = ctx[1];
	struct ringer_told *told;

	if (number < 100000 || bpf_get_current_pid_tgid() >> 32 != RINGER_TGID)
		return;
	rows->runs++;
	told = events.ringbuf_reserve(sizeof(*told));
	if (!told) {
		row->events_lost++;
		return;
	}
	begin_event(&told->event, RINGER_TOLD_EVENT, now, cpu);
	told->number = number;
	if (number & (1 << 20))
		events.ringbuf_discard(told, 1);
	else
		submit_event(told);"""
BASE, DISCARD, RECORD = 100_000, 1 << 20, 1024
_libc = ctypes.CDLL(None)


@pytest.fixture
def ringer(make: Make) -> Iterator[Session]:
    """A session with a ring of two pages; ``tell`` sends an event of 1016 bytes through it."""
    probe = make(
        "ringer",
        TELL,
        header=TOLD,
        hooks=(Tracepoint("raw_syscalls:sys_enter", ("struct pt_regs *", "long int")),),
        maps=(Map("cpus", "cpu_row", ("cpu",)), Map("ringer_rows", "ringer_row", ("cpu",))),
        tables=(Events("told", "", layout="ringer_told"),),
    )
    with attach([probe], options(RINGER_TGID=os.getpid(), RING_PAGES=2)) as session:
        yield session


def tell(*numbers: int) -> None:
    for number in numbers:
        _libc.syscall(BASE + number)


def told(session: Session) -> list[int]:
    return [int(number) - BASE for _, _, rows in session.events() for number in rows["number"]]


def lost(session: Session) -> int:
    return int(session.array("cpus")["events_lost"].sum())


def test_events_come_once_in_order_over_many_turns_of_the_ring(ringer: Session) -> None:
    assert told(ringer) == []
    for first in range(0, 1000, 5):
        tell(*range(first, first + 5))
        assert told(ringer) == list(range(first, first + 5))
    assert lost(ringer) == 0


def test_a_full_ring_counts_what_it_loses_and_goes_on_afterwards(ringer: Session) -> None:
    room = 2 * mmap.PAGESIZE // RECORD - 1  # one byte short of the ring's size would still be full
    tell(*range(room + 20))
    kept = told(ringer)
    assert len(kept) + lost(ringer) == room + 20
    assert kept == list(range(len(kept))) and room <= len(kept) <= room + 1
    tell(500)
    assert told(ringer) == [500]


def test_discarded_records_are_passed_over(ringer: Session) -> None:
    tell(1, DISCARD, 2, DISCARD, DISCARD)
    assert told(ringer) == [1, 2]
    for number in range(50):
        tell(DISCARD + number, number)
        assert told(ringer) == [number]


def test_a_producer_without_end_does_not_hold_the_reader(ringer: Session) -> None:
    stop = threading.Event()

    def produce() -> None:
        number = 0
        while not stop.is_set():
            tell(number % 1000)
            number += 1

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        end = time.monotonic() + 0.3
        most = 0
        while time.monotonic() < end:
            most = max(most, len(told(ringer)))
    finally:
        stop.set()
        producer.join()
    assert 0 < most <= 2 * mmap.PAGESIZE // RECORD


def test_a_record_still_being_written_stops_the_reader_until_it_is_done() -> None:
    size, page = 2 * mmap.PAGESIZE, mmap.PAGESIZE
    descriptor = os.memfd_create("ring")
    os.ftruncate(descriptor, 2 * page + 2 * size)
    with mmap.mmap(descriptor, 0) as memory:
        ring = Ring(os.dup(descriptor), size)
        struct.pack_into("<II5s", memory, 2 * page, 5, 0, b"first")
        struct.pack_into("<II", memory, 2 * page + 16, 1 << 31 | 4, 0)
        struct.pack_into("<II4s", memory, 2 * page + 32, 4, 0, b"last")
        struct.pack_into("<Q", memory, page, 48)
        assert list(ring.read()) == [b"first"]
        assert list(ring.read()) == []
        assert struct.unpack_from("<Q", memory) == (16,)
        struct.pack_into("<II4s", memory, 2 * page + 16, 4, 0, b"done")
        assert list(ring.read()) == [b"done", b"last"]
        assert struct.unpack_from("<Q", memory) == (48,)
        assert ring.size_bytes == size
        ring.close()
    os.close(descriptor)


# Arrays


def test_arrays_are_live_and_views_outlive_their_session(make: Make) -> None:
    session = attach([make("fine")], options())
    view = session.array("fine_rows")
    before = int(view["runs"].sum())
    assert runs(session, "fine") > before
    assert session.map_bytes >= view.nbytes
    copy = view.copy()
    session.close()
    assert (view["runs"] >= copy["runs"]).all()
    with pytest.raises(KeyError):
        session.array("fine_rows")
    session.close()
    frozen = view.copy()
    time.sleep(0.05)
    assert (view == frozen).all(), "still attached"


# CPUs, processes and cgroups

Attach = Callable[..., "Filtered"]


class Filtered:
    """Probes that look at some CPUs or tasks only."""

    def __init__(self, *names: str, chosen: frozenset[int] | None = None, **constants: int) -> None:
        names_of = CgroupNames()
        every = all_probes()
        clock = [cpu for cpu in cpus.online() if chosen is None or cpu in chosen]
        asked = Options(cpus.possible_count(), clock, chosen, {**constants, **names_of.constants})
        self.session = attach(ordered((every[name] for name in names), every), asked)
        assert not self.session.refused
        self._collector = Collector(self.session, names_of)

    def collect(self) -> dict[str, Window]:
        return {f"{window.probe}.{window.table}": window for window in self._collector.collect()}

    def __enter__(self) -> Filtered:
        return self

    def __exit__(self, *_: object) -> None:
        self._collector.close()
        self.session.close()


requires_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="only one CPU")


@requires_two
def test_cpus_left_out_have_no_rows() -> None:
    # Something of everything on the CPU that is looked at: an idle one may have nothing to show.
    busy = "for _ in range(50):\n    spin(0.005)\n    time.sleep(0.005)"
    with Filtered("runqueue", "softirq", "hardirq", chosen=frozenset({1})) as traced, Task(busy, cpu=1) as task:
        traced.collect()
        task.go()
        task.result()
        windows = traced.collect()
    for name in ("runqueue.wait", "softirq.run", "hardirq.run", "cpustate.time"):
        assert set(windows[name].rows["cpu"].tolist()) == {1}, name
    for name in ("runqueue.worst", "softirq.worst"):
        assert set(windows[name].rows["cpu"].tolist()) <= {1}, name


#: Sleeps until it is woken, a hundred times; then goes to CPU 0 and back as often.
WOKEN_AND_MOVED = """
for _ in range(100):
    go()
for _ in range(100):
    os.sched_setaffinity(0, {0})
    os.sched_setaffinity(0, {1})
"""
#: Sleeps for long, then is woken a hundred times.
SLEEPER = "time.sleep(0.7)\nfor _ in range(100):\n    go()\n"


def wake(task: Task, times: int) -> None:
    for _ in range(times):
        time.sleep(0.001)
        task.go()


@requires_two
def test_a_task_woken_elsewhere_is_counted_where_it_runs() -> None:
    affinity = os.sched_getaffinity(0)
    with (
        Task(WOKEN_AND_MOVED, cpu=1) as task,
        Filtered("runqueue", chosen=frozenset({1}), FILTER_TGID=task.pid) as traced,
    ):
        traced.collect()
        os.sched_setaffinity(0, {0})
        try:
            task.go()
            wake(task, 100)
            used = task.result()
        finally:
            os.sched_setaffinity(0, affinity)
        windows = traced.collect()
    waits = windows["runqueue.wait"].rows
    assert waits["cpu"].tolist() == [1]
    # Two hundred times it came onto CPU 1: woken or moved. All its stays, CPU 0's too, are the most.
    assert 150 <= counted(waits) <= used["slices"] + 5
    assert int(waits["sum"].sum()) <= used["wait_ns"] * 1.1 + 20_000_000
    assert windows["runqueue.wait"].losses["unmatched"] <= 3


@pytest.fixture(params=[os.fsdecode(mount) for _, mount, _ in CgroupNames().trees])
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup of v1 or of v2, of each where both are there."""
    folder = Path(request.param) / f"foreshock-filter-{os.getpid()}"
    folder.mkdir()
    yield folder
    folder.rmdir()


@pytest.mark.parametrize("filter", ["FILTER_TGID", "FILTER_CGROUP"])
def test_a_filter_lets_only_its_tasks_waits_through(filter: str, group: Path) -> None:
    with Task(SLEEPER, cpu=1) as task, Task("spin(1.5)", cpu=1) as other:
        (group / "cgroup.procs").write_text(str(task.pid))
        name = f"/{group.name}"
        wanted = {"FILTER_TGID": task.pid, "FILTER_CGROUP": CgroupNames().id_of(name)}
        with Filtered("runqueue", chosen=None, **{filter: wanted[filter]}) as traced:
            traced.collect()
            task.go()
            other.go()
            time.sleep(0.8)
            wake(task, 100)
            used = task.result()
            time.sleep(0.05)
            windows = traced.collect()
        other.result()
    waits, worst = windows["runqueue.wait"], windows["runqueue.worst"].rows
    assert counted(waits.rows) == pytest.approx(used["slices"], abs=5)
    assert int(waits.rows["sum"].sum()) == pytest.approx(used["wait_ns"], rel=0.1, abs=20_000_000)
    assert set(worst["pid"].tolist()) <= {task.pid}
    assert not len(worst) or int(worst["wait_ns"].max()) <= used["wait_ns"] + 20_000_000
    assert waits.losses["unmatched"] <= 3
    assert np.isin(worst["cgroup"], [name.encode()]).all()
