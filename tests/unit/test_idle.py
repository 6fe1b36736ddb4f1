"""Which waits are idle by their stacks and tasks, that hidden and shown are all, and where it is said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from unit.deep_samples import DEEP_HEADER, FRAME, OFF, STACK, WAKER
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node
from unit.test_jobs import members, row

from tracer.analysis.idle import LOCKS, NAMES, OURS, RULES, idle_kinds, whose
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary, Stacks
from tracer.closeup import standby, worker
from tracer.commands import main
from tracer.kernel import graceperiods, helper
from tracer.recording import RecordingWriter
from tracer.reports.html.blob import Blob
from tracer.reports.html.flames import Flames, Limits
from tracer.reports.html.payload import Payload
from tracer.reports.html.timeline import Timeline
from tracer.reports.sections.stacks import still_blocked
from tracer.window import Window

KERNEL_THREADS, SLEEP, EVENTS, FUTEX, CHILDREN = RULES
SYSCALL = "entry_SYSCALL_64_after_hwframe do_syscall_64"
#: Of the program, then of the kernel; outermost first.
KINDS = {
    f"main | {SYSCALL} __x64_sys_clock_nanosleep hrtimer_nanosleep do_nanosleep schedule __schedule": SLEEP,
    f"main | {SYSCALL} do_epoll_wait schedule_hrtimeout_range_clock schedule __schedule": EVENTS,
    f"main | {SYSCALL} do_sys_poll poll_schedule_timeout.constprop.0 schedule_hrtimeout_range schedule": EVENTS,
    f"main | {SYSCALL} __x64_sys_pause schedule __schedule": EVENTS,
    f"main | {SYSCALL} unix_accept skb_recv_datagram __skb_wait_for_more_packets schedule_timeout schedule": EVENTS,
    f"worker pthread_cond_wait | {SYSCALL} futex_wait __futex_wait futex_do_wait schedule __schedule": FUTEX,
    f"worker __GI___lll_lock_wait | {SYSCALL} futex_wait __futex_wait futex_do_wait schedule": "",
    f"std::sys::sync::mutex::futex::Mutex::lock_contended syscall | {SYSCALL} futex_wait_queue schedule": "",
    f"sh | {SYSCALL} __do_sys_wait4 kernel_wait4 do_wait schedule __schedule": CHILDREN,
    "| ret_from_fork_asm ret_from_fork kthread worker_thread schedule __schedule": KERNEL_THREADS,
    "| ret_from_fork kthread any_name_of_a_module schedule_timeout schedule": KERNEL_THREADS,
    "| ret_from_fork kthread rcu_gp_kthread rcu_gp_fqs_loop schedule_timeout schedule __schedule": KERNEL_THREADS,
    "| ret_from_fork kthread worker_thread process_one_work wb_workfn io_schedule schedule": "",
    "| ret_from_fork kthread kjournald2 jbd2_journal_commit_transaction schedule": "",
    f"main | {SYSCALL} ext4_sync_file folio_wait_bit io_schedule schedule __schedule": "",
    f"main | {SYSCALL} __do_sys_flock locks_lock_inode_wait schedule __schedule": "",
    f"main | {SYSCALL} tcp_recvmsg sk_wait_data wait_woken schedule_timeout schedule": "",
    f"main | {SYSCALL} anon_pipe_read schedule __schedule": "",
    f"main | {SYSCALL} io_cqring_wait schedule": "",
    "main | asm_exc_page_fault handle_mm_fault folio_wait_bit_common io_schedule schedule": "",
    # A program may call its functions as the kernel does.
    "ret_from_fork kthread do_nanosleep |": "",
    "main do_nanosleep | schedule __schedule": "",
    "|": "",
}


def dictionary(*stacks: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the tables ``stacks`` and ``frames``: a stack's id is its place and 1."""
    known: dict[tuple[str, str], int] = {}
    rows = []
    for place, stack in enumerate(stacks):
        user, kernel = (part.split() for part in stack.split("|"))
        frames = [*(("u", name) for name in user), *(("k", name) for name in kernel)]
        for depth, frame in enumerate(reversed(frames)):
            rows.append((place + 1, depth, known.setdefault(frame, len(known) + 1)))
    frames_told = [(number, kind.encode(), b"", name.encode()) for (kind, name), number in known.items()]
    return np.array(rows, STACK), np.array(frames_told, FRAME)


def test_a_wait_is_idle_by_the_function_in_which_it_waits():
    known = Dictionary()
    for rows in dictionary(*KINDS):
        known.learn(rows)
    blocks = np.zeros(len(KINDS), [("stack", "u8"), ("whose", "u1")])
    blocks["stack"] = np.arange(len(KINDS)) + 1
    found = [NAMES[kind] for kind in known.idle_kinds(blocks).tolist()]
    assert dict(zip(KINDS, found, strict=True)) == KINDS


def test_whose_a_wait_is_and_its_state_decide_beside_the_stack():
    source = Source(pid=70)
    source.jobs.add(members(row(5, 3), row(6, job=b"", rank=-1), row(8, job=b"48213", rank=-1)))
    blocks = np.array(
        [
            *((0, pid, pid, b"python", 1, SECOND, 1, b"S") for pid in (5, 6, 8, 9, 70)),
            *((0, 9, 9, comm, 0, SECOND, 1, b"S") for comm in (b"foreshock-help", b"foreshock-db")),
            *((0, 9, 9, b"python", 1, SECOND, 1, state) for state in (b"D", b"T", b"I")),
        ],
        OFF,
    )
    found = idle_kinds(np.full(len(blocks), NAMES.index(SLEEP)), whose(blocks, source)).tolist()
    own = "foreshock itself"
    assert [NAMES[kind] for kind in found] == ["", SLEEP, "", SLEEP, own, own, SLEEP, "", "", SLEEP]


def test_who_slept_all_along_is_idle_unless_a_rank_or_blocked():
    """By its stack where that tells, else because it slept: a rank never, and nobody in D."""
    source = Source(pid=70)
    source.jobs.add(members(row(5, 3)))
    of_tasks = ((5, b"S", b"a"), (9, b"S", b"a"), (9, b"D", b"a"), (9, b"S", b"o"), (9, b"S", b""))
    blocks = np.zeros(len(of_tasks), [*OFF.descr, ("waker_kind", "S1")])
    blocks["comm"] = b"python"
    for name, column in zip(("pid", "state", "waker_kind"), zip(*of_tasks, strict=True), strict=True):
        blocks[name] = column
    for stack, along in (("", "asleep from before the start to the end"), (SLEEP, SLEEP)):
        found = idle_kinds(np.full(len(blocks), NAMES.index(stack)), whose(blocks, source)).tolist()
        assert [NAMES[kind] for kind in found] == ["", along, "", stack, stack]


def test_who_is_in_d_at_the_end_is_named():
    blocks = np.zeros(5, [*OFF.descr, ("waker_kind", "S1")])
    blocks["tid"] = blocks["pid"] = (1, 2, 3, 4, 5)
    blocks["comm"] = (b"mount", b"cat", b"short", b"sleeps", b"woken")
    blocks["weight"] = (9 * SECOND, 7 * SECOND, SECOND // 100, 9 * SECOND, 9 * SECOND)
    blocks["state"] = (b"D", b"D", b"D", b"S", b"D")
    blocks["waker_kind"] = (b"a", b"o", b"o", b"o", b"t")
    stacks = Stacks(Source())
    stacks.add(blocks)
    assert stacks.still.threads == 4
    told = still_blocked(stacks.still, Source())
    assert told == "Uninterruptible (D) at the end, and no end was seen: mount[1] all along, cat[2] 7 s."
    assert still_blocked(Stacks(Source()).still, Source()) == ""


def test_our_processes_are_known_by_name():
    assert {name.encode() for name in (helper.NAME, standby.NAME, worker.NAME, graceperiods.NAME)} < {*OURS}


def test_every_rule_is_in_the_docs(checkout):
    page = (checkout / "docs" / "reports.md").read_text()
    told = set(re.findall(r"`([^`]+)`", page.partition("### Idle waits")[2].partition("\n### ")[0]))
    assert {*(name for names in RULES.values() for name in names), *LOCKS} <= told
    assert all(f"| {name} |" in page for name in NAMES[1:])


SLEEPS, WAITS = (
    f"main | {SYSCALL} hrtimer_nanosleep do_nanosleep schedule",
    f"main | {SYSCALL} locks_lock_inode_wait schedule",
)


def windows(second: int) -> list[Window]:
    """Return a second in which a thread is asleep for 9/10, and a rank, whose stack is the same, for 1/20."""
    start = START + second * SECOND
    off = np.array(
        [
            (0, 9, 9, b"cron", 1, 900_000_000, 9, b"S"),
            (1, 60, 61, b"python", 1, 50_000_000, 3, b"S"),
            (1, 60, 62, b"python", 2, 50_000_000, 3, b"S"),
        ],
        OFF,
    )
    tables = (("samples", off), *zip(("stacks", "frames"), dictionary(SLEEPS, WAITS), strict=True))
    found = [Window("offcpu", name, start, start + SECOND, rows, {}) for name, rows in tables]
    # Told after what it decides about, in the same interval.
    job = members(row(60, 3), end_ns=start + SECOND)
    return [*found, Window("jobs", "members", start, start + SECOND, job.rows, {})]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, node = tmp_path_factory.mktemp("idle") / "node.fsk", Node(cpus=2)
    with RecordingWriter(path, DEEP_HEADER) as writer:
        for second in range(4):
            writer.write([*node.interval(), *windows(second)])
    return path


def run(*arguments: str | Path, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def section(text: str, title: str) -> str:
    """Return a section without its line breaks and columns."""
    return " ".join(text.partition(title)[2].partition("\n\n")[0].split())


def test_an_export_hides_idle_waits_says_how_much_and_shows_them_on_request(recording):
    folded = ("export", recording, "--format", "folded")
    shown, said = run(*folded)
    assert re.findall(r"^(\w+);.*;(\w+)_\[k\];\w+_\[k\] (\d+)$", shown, re.M) == [
        ("python", "do_nanosleep", "200000000"),
        ("python", "locks_lock_inode_wait", "200000000"),
    ]
    assert "Hid 90 % of 4 s off the CPU, idle waits: sleep for a set time 3.6 s. --idle shows them." in said
    everything, said = run(*folded, "--idle")
    assert said == "" and sum(int(line.rpartition(" ")[2]) for line in everything.splitlines()) == 4 * SECOND


def test_files_for_others_say_what_they_leave_out(recording):
    profile = json.loads(run("export", recording, "--format", "speedscope")[0])
    assert profile["name"].endswith("without 90 % of 4 s off the CPU: idle waits")
    assert profile["profiles"][0]["endValue"] == 4 * 100_000_000


def test_nothing_but_idle_waits_is_said_to_be_so(recording):
    _, said = run("export", recording, "--format", "folded", "--pid", "9", code=2)
    assert said.splitlines() == [
        "foreshock: error: all stacks of that part are idle waits.",
        "hint: --idle shows them",
    ]


def test_tables_hold_everything_and_know_no_choice(recording):
    assert "--idle would do nothing" in run("export", recording, "--format", "json", "--idle", code=2)[1]


def test_the_summary_ranks_what_is_not_idle_and_says_what_is(recording):
    text, _ = run("summary", recording)
    told = section(text, "OFF-CPU STACKS")
    assert "cron" not in told and "200 ms 50 % python[61]" in told
    assert "Hid 90 % of 4 s off the CPU, idle waits of 1 thread: sleep for a set time 3.6 s." in told
    text, _ = run("summary", recording, "--idle")
    told = section(text, "OFF-CPU STACKS")
    assert "cron[9]" in told and "Idle waits of 1 thread are 90 % of 4 s" in told
    found = json.loads(run("summary", "--json", recording)[0])["stacks"]["offcpu"]
    assert found["weight"] == 4 * SECOND
    assert found["idle"] == {"weight": 3_600_000_000, "threads": 1, "kinds": {SLEEP: 3_600_000_000}}


def test_the_report_in_text_leaves_them_out_of_functions(recording):
    text, _ = run("report", "--text", recording)
    told = section(text, "FUNCTIONS  Off CPU, by")
    assert re.search(r"do_nanosleep_\[k\] 200 ms 50 %", told)
    assert "Without idle waits: 90 % of 4 s." in told
    text, _ = run("report", "--text", "--idle", recording, "--baseline", recording)
    assert "Without idle waits" not in text
    text, _ = run("report", "--text", recording, "--baseline", recording)
    text = " ".join(text.split())
    assert "Without idle waits: 90 % of 4 s, 90 % of 4 s in the baseline." in text


def test_where_there_is_no_room_for_all_what_is_shown_first_has_it():
    stacks = [
        f"main | {SYSCALL} {name}_{number} {end} schedule"
        for name, end in (("idle", "do_nanosleep"), ("disk", "io_schedule"))
        for number in range(50)
    ]
    known = Dictionary()
    for rows in dictionary(*stacks):
        known.learn(rows)
    blocks = [(0, 9, 9, b"python", place + 1, SECOND if place < 50 else SECOND // 50, 1, b"S") for place in range(100)]
    flames = Flames(1.0, known, lambda _: False, source=Source())
    flames.add(0, Window("offcpu", "samples", 0, SECOND, np.array(blocks, OFF)), Timeline(SECOND))
    found = flames.packed(Blob(), Limits(nodes=110))
    assert found is not None
    names = {name for name, _, _ in found["names"]}
    assert {f"disk_{number}" for number in range(50)} <= names and "idle_49" not in names
    assert found["total"] == 51 * SECOND and found["pruned"] == pytest.approx(50 * SECOND, rel=0.1)


def test_idle_waits_make_no_stacks_bad():
    """Who slept all along has no stack: nine tenths of the time of an idle node."""
    blocks = np.zeros(2, [*OFF.descr, *WAKER])
    blocks["comm"], blocks["state"], blocks["stack"] = b"python", (b"S", b"D"), (0, 1)
    blocks["tid"] = blocks["pid"] = (8, 9)
    blocks["waker_kind"], blocks["weight"] = (b"a", b""), (9 * SECOND, SECOND)
    stacks, frames = dictionary(f"main | {SYSCALL} ext4_sync_file io_schedule schedule")

    def chip(blocks: np.ndarray) -> dict[str, str]:
        payload = Payload(DEEP_HEADER)
        told = {"stacks": stacks, "frames": frames, "samples": blocks}
        windows = [Window("offcpu", table, START, START + SECOND, rows) for table, rows in told.items()]
        payload.add_interval([*Node(cpus=2).interval(), *windows])
        (found,) = (one for one in Data(payload.text(1 << 20)).tree["quality"] if one["what"] == "Off CPU stacks")
        return found

    assert chip(blocks)["state"] == "good" and "table" not in chip(blocks)
    assert chip(blocks)["text"].startswith("0 % of the time without idle waits is in functions without a name")
    blocks["state"] = b"D"
    assert chip(blocks)["state"] == "bad" and chip(blocks)["text"].startswith("90 % of the time is in functions")


def test_a_report_tells_each_weights_kind_and_its_total_is_all():
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for second in range(4):
        payload.add_interval([*node.interval(), *windows(second)])
    data = Data(payload.text(1 << 30))
    (flame,) = (one for one in data.tree["flames"] if one["name"] == "offcpu")
    for part in (flame, flame["by_cpu"]):
        kinds, weights = data.array(part["idle"]), data.array(part["weights"])
        by_kind = np.bincount(kinds, weights, len(NAMES))
        assert by_kind[[0, NAMES.index(SLEEP)]].tolist() == [400_000_000, 3_600_000_000] and flame["total"] == sum(
            by_kind
        )
    assert data.tree["idle_kinds"] == list(NAMES) and data.tree["idle_shown"] is False
