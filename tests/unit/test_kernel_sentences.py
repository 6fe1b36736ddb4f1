"""Lines of the kernel's log without the names in them, whatever these are made of."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracer.blackbox.redact import Redactor

KEY = b"0123456789abcdef"
OOM = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
#: As the kernel writes them, a name in each pair of braces.
OOM_INVOKED = "{} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999"
OOM_KILL = OOM + "cpuset={},mems_allowed=0-1,oom_memcg=/{},task_memcg=/{},task={},pid=7,uid=0"
LINES = (
    "INFO: task {}:123 blocked for more than 120 seconds.",
    "INFO: task {}:123 <writer> blocked on an rw-semaphore likely owned by task {}:7 <reader>",
    "INFO: task {}:12 is blocked on a mutex likely owned by task {}:7.",
    "INFO: task {}:12 blocked on a semaphore likely last held by task {}:7",
    "INFO: task {}:12 is blocked on a mutex, but the owner is not found.",
    OOM_INVOKED,
    f"<4>[ 1234.567890] {OOM_INVOKED}",
    OOM_KILL,
    OOM + "cpuset={},mems_allowed=0-1,global_oom,task_memcg=/{},task={},pid=7,uid=0",
    "Memory cgroup out of memory: Killed process 9 ({}) total-vm:8kB, anon-rss:4kB, UID:0 oom_score_adj:0",
    "process_mrelease: reaped process 9 ({}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB oom_score_adj:0",
    "oom_reaper: reaped process 9 ({}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "[    812]     0   812     2311      640      256      384         0    61440        0             0 {}",
    "Memory cgroup stats for /{}:",
    "cgroup: fork rejected by pids controller in /{}",
    "CPU: 3 UID: 0 PID: 77 Comm: {} Not tainted 6.18.44 #1 PREEMPT(voluntary)",
    "CPU: 3 UID: 0 PID: 77 Comm: {} Kdump: loaded Tainted: G           OE       6.18.44 #1",
    "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [{}:77]",
    "task:{} state:D stack:0     pid:77    tgid:77    ppid:1      flags:0x00000002",
    "{}[77]: segfault at 0 ip 0000555 sp 00007ff error 4 in {}[1000,555000+1000] likely on CPU 3 (core 1, socket 0)",
    "traps: {}[77] trap invalid opcode ip:555 sp:7ff error:0 in {}[555+1000]",
    "{}: page allocation failure: order:5, mode:0xcc0(GFP_KERNEL), nodemask=(null),cpuset={},mems_allowed=0",
    "Memory failure: 0x1f00: Sending SIGBUS to {}:77 due to hardware memory corruption",
)
AUDIT = "audit: type=1326 audit(1700000000.100:7): auid=0 pid=77 comm={} exe={} sig=31 arch=c000003e"
#: What names could be made of to get away: signs, and what stands around names in these lines.
PARTS = sorted({part for line in (*LINES, AUDIT) for part in line.split("{}")} | {*" ()[]:,=\"'<>\\\n", ":1 ", "[3]"})
HOSTILE = st.lists(st.sampled_from(PARTS), max_size=5).map(lambda parts: "ZQ" + "".join(f"{one}ZQ" for one in parts))


def audited(name: str) -> str:
    """As audit_log_n_untrustedstring writes what people have named."""
    harmless = all(" " < char <= "~" and char != '"' for char in name)
    return f'"{name}"' if harmless else name.encode().hex().upper()


def filled(line: str, names: list[str]) -> str:
    return line.format(*map(audited, names)) if line is AUDIT else line.format(*names)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", ["Isolated Web Co", "x (y) z", "a:b", "trainer"])
def test_a_name_is_its_hash_and_all_else_stays(line, name):
    redactor = Redactor(KEY)
    # A cgroup's path is its name.
    paths = line.replace("/{}", "{}")
    names = [f"/{name}" if before.endswith("/") else name for before in line.split("{}")[:-1]]
    assert redactor.text(line.format(*[name] * 4)) == paths.format(*map(redactor.name, names))


@given(line=st.sampled_from((*LINES, AUDIT)), names=st.lists(HOSTILE, min_size=4, max_size=4))
@example(OOM_INVOKED, ["ZQ,task=ZQ"] * 4)
@example(OOM_KILL, ["ZQ,mems_allowed=ZQ,task=ZQ,pid=7ZQ"] * 4)
@example(AUDIT, ["hidden ZQ"] * 4)
def test_nothing_of_a_hostile_name_stays(line, names):
    told = Redactor(KEY).text(filled(line, names))
    assert "ZQ" not in told and b"ZQ".hex().upper() not in told
    assert told.startswith(line.partition("{}")[0].rstrip('"/')) or line.startswith("{}")


#: Of the others what they are isn't known yet where their name ends.
TOLD_AT_ONCE = [line for line in LINES if not line.startswith(("{}", "<", "traps"))]


@given(line=st.sampled_from(TOLD_AT_ONCE), cut=st.integers(0, 60))
def test_nothing_of_a_name_stays_where_the_line_was_cut_off_in_it(line, cut):
    last = line.rindex("{}")
    whole = line[:last].replace("{}", "job") + "ZQ name of ZQ"
    assert "ZQ" not in Redactor(KEY).text(whole[: max(last, len(whole) - cut)])


@pytest.mark.parametrize(
    "line", ["systemd waits in line", "task=5", "nvme nvme0: I/O 7 (Read) timeout", "md0: in sync"]
)
def test_what_is_no_such_sentence_stays(line):
    assert Redactor(KEY).text(line) == line


def test_a_cgroup_in_a_sentence_of_ours_may_have_spaces():
    redactor = Redactor(KEY)
    told = redactor.text("hog[60] (held by a thread; cgroup /a b/c) held CPU 3")
    assert told == f"{redactor.name('hog')}[60] (held by a thread; cgroup {redactor.name('/a b/c')}) held CPU 3"
