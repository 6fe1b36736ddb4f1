"""Once attached, privileges are one small process's: what it does, what it refuses, and what happens without it."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.objects import all_ids, children, orphans, owned
from kernel.command import FORESHOCK, environment
from kernel.frozen import Frozen
from kernel.watching import Watching, helper, sentinels

from tracer.closeup.standby import NAME as STANDBY
from tracer.kernel import cpus
from tracer.kernel.deeds import Deeds
from tracer.kernel.errands import ANSWER, QUESTION, Errand, serve
from tracer.kernel.helper import Helper
from tracer.kernel.session import Session
from tracer.recording import read_recording

#: Bits of include/uapi/linux/capability.h.
DAC_OVERRIDE, DAC_READ_SEARCH, IPC_LOCK, SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYSLOG, PERFMON, BPF = (
    1 << bit for bit in (1, 2, 14, 19, 21, 23, 34, 38, 39)
)
RECORD = DAC_OVERRIDE | DAC_READ_SEARCH | SYSLOG
AGENT = RECORD | IPC_LOCK | SYS_NICE
HELPER = PERFMON | SYS_ADMIN | SYS_PTRACE | DAC_READ_SEARCH
STANDS_BY = HELPER | BPF | SYSLOG | DAC_OVERRIDE


def capabilities(pid: int) -> set[int]:
    """Return what a process may, and what it could take back."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {int(line.split()[1], 16) for line in lines if line.startswith(("CapPrm", "CapEff", "CapBnd", "CapAmb"))}


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def for_maps(attach) -> int:
    """Return what reading maps takes: CAP_BPF before Linux 5.19, then nothing."""
    return BPF if attach("cpustate").session.capabilities() else 0


def test_no_process_of_the_agent_keeps_more_than_is_documented(tmp_path, for_maps):
    closeup = ("--closeup", "page", "--closeup-folder", str(tmp_path / "closeups"))
    with Watching(tmp_path, "--blackbox", str(tmp_path / "box"), *closeup) as watching:
        agent, helping = watching.process.pid, helper(watching.process.pid)
        (standby,) = (pid for pid in children(agent) if Path(f"/proc/{pid}/comm").read_text() == f"{STANDBY}\n")
        every = {agent, *children(agent)}
        every |= {other for pid in every for other in children(pid)}
        assert capabilities(agent) == {AGENT | for_maps, 0}
        assert capabilities(helping) == {HELPER, 0}
        assert capabilities(standby) == {STANDS_BY, 0}
        others = every - {agent, helping, standby}
        assert len(others) >= 3  # two sentinels, and the black box's writer
        # Sentinels give theirs up once they are warm.
        wait_for(lambda: all(not held & ~(AGENT | for_maps) for pid in others for held in capabilities(pid)))
        # Of what is attached it has the clock's program, and neither links, events nor maps.
        kinds = [os.readlink(path) for path in Path(f"/proc/{helping}/fd").iterdir()]
        assert sorted(kind for kind in kinds if "anon_inode" in kind) == ["anon_inode:bpf-prog"]
        assert "bpf" not in Path(f"/proc/{helping}/maps").read_text() + Path(f"/proc/{standby}/maps").read_text()
        assert not any(owned(standby).values())
        assert os.sched_getaffinity(helping) == os.sched_getaffinity(agent)


def test_the_agent_goes_on_without_it_and_says_so_once(tmp_path):
    before = all_ids()
    with Watching(tmp_path) as watching:
        helping = helper(watching.process.pid)
        os.kill(helping, signal.SIGKILL)
        watching.wait(lambda: f"the privileged helper (pid {helping}) died" in watching.notes)
        assert not Path(f"/proc/{helping}").exists()
        watched, began = sentinels(watching.process.pid), time.monotonic()
        while time.monotonic() < began + 3:
            assert watching.process.poll() is None
            time.sleep(0.1)
        assert len(watching.notes.splitlines()) == 1, watching.notes
        assert sentinels(watching.process.pid) == watched
    assert watching.process.returncode == 0
    assert orphans(before) == {}


def test_it_ends_with_an_agent_that_is_killed(tmp_path):
    with Watching(tmp_path) as watching:
        helping = helper(watching.process.pid)
        watching.process.kill()
        wait_for(lambda: not Path(f"/proc/{helping}").exists())


@pytest.mark.timeout(90)
def test_a_recording_has_run_times_and_stacks_of_blocked_tasks(tmp_path, for_maps):
    path = tmp_path / "trace.fsk"
    command = [*FORESHOCK, "record", "--quiet", "--for", "15s", "-o", str(path), "--probes", "hung,kernellog"]
    with Frozen(tmp_path) as frozen:
        pid = frozen.block()
        with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as process:
            wait_for(path.exists)
            assert capabilities(process.pid) == {RECORD | for_maps, 0}
            assert capabilities(helper(process.pid)) == {HELPER, 0}
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and said == "", said
    recording = read_recording(path)
    windows = [window for interval in recording.intervals for window in interval]
    stacks = {
        row["stack"] for window in windows if window.table == "blocked" for row in window.rows if row["pid"] == pid
    }
    assert any(b"percpu_rwsem_wait" in stack and b"openat" in stack for stack in stacks), stacks
    # Shown to privileges alone: read while there were some.
    assert "net.core.bpf_jit_limit" in recording.header["fingerprint"]["sysctl"]
    costs = [row for window in windows if window.table == "cost" for row in window.rows]
    assert sum(int(row["run_count"]) for row in costs) > 0 and sum(int(row["run_ns"]) for row in costs) > 0


@pytest.fixture
def helping(attach) -> Iterator[Session]:
    session = attach("cpustall").session
    session.delegate()
    yield session


def test_one_that_hangs_holds_nobody_up_for_long_and_its_late_answer_is_dropped(helping):
    # Once it has answered, it has its name.
    assert helping.stack(os.getpid()) is not None
    (pid,) = (pid for pid in children(os.getpid()) if _comm(pid) == "foreshock-help")
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: _state(pid) == "T")
    began = time.monotonic()
    assert helping.stack(2) is None
    took = time.monotonic() - began
    assert 0.09 <= took < 1
    began = time.monotonic()
    assert [helping.stack(2) for _ in range(100)] == [None] * 100 and not helping.add_clocks(cpus.online()[0])
    assert time.monotonic() - began < took
    assert helping.trouble() == ""
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: helping.stack(2))
    # Each answer is that of its question: the thread's, not the late one's.
    assert b"kthreadd" in (helping.stack(2) or b"") and b"kthreadd" not in (helping.stack(1) or b"")
    opened = len(os.listdir("/proc/self/fd"))
    assert helping.add_clocks(cpus.online()[0])
    assert len(os.listdir("/proc/self/fd")) == opened + 1


def test_where_no_process_can_be_forked_it_is_said(attach, monkeypatch):
    def refuse() -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    session = attach("cpustall").session
    session.settle()
    opened = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "fork", refuse)
    session.delegate()
    assert session.trouble() == "no privileged helper: Resource temporarily unavailable"
    assert os.listdir("/proc/self/fd") == opened


def test_its_close_ends_it():
    made = Helper(Deeds({}, {0}), lambda: None)
    assert _comm(made.pid)
    descriptor = made.accounting()
    os.close(descriptor)
    made.close()
    assert not Path(f"/proc/{made.pid}").exists()


@pytest.fixture
def asked() -> Iterator[Callable[[bytes], tuple[int, int, bytes, list[int]]]]:
    """Return a function that asks as somebody might who is not us; it has number, error, text and descriptors."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        thread = threading.Thread(target=serve, args=(theirs, Deeds({}, {0})))
        thread.start()

        def ask(question: bytes) -> tuple[int, int, bytes, list[int]]:
            ours.send(question)
            data, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 8)
            return *ANSWER.unpack_from(data), data[ANSWER.size :], descriptors

        yield ask
        ours.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "question",
    [
        b"x",
        QUESTION.pack(7, Errand.STACK, 2) + b"x" * 5000,
        *(
            QUESTION.pack(7, *words)
            for words in [
                *((0, 0), (5, 1), (Errand.CLOCKS, 1)),
                *((errand, pid) for errand in (Errand.STACK, Errand.VARIABLES) for pid in (0, 1 << 22 | 1)),
            ]
        ),
        QUESTION.pack(7, Errand.CLOCKS, 0xFFFFFFFF),
    ],
)
def test_whatever_else_is_asked_is_refused(asked, question):
    assert asked(question)[1:] == (errno.EINVAL, b"", [])
    # And it goes on.
    number, error, text, descriptors = asked(QUESTION.pack(8, Errand.STACK, 2))
    assert (number, error, descriptors) == (8, 0, []) and text.startswith(b"[<0>] kthreadd")


def test_who_ends_without_having_read_an_answer_ends_it_in_silence():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        thread = threading.Thread(target=serve, args=(theirs, Deeds({}, {0})))
        thread.start()
        with ours:
            ours.send(QUESTION.pack(1, Errand.STACK, 2))
            assert select.select([ours], [], [], 20)[0]
        # What it raises would be a warning, which is an error here.
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize(("errand", "argument", "most"), [(Errand.STACK, 1, 64), (Errand.ACCOUNTING, 0, 2)])
def test_more_than_a_trace_needs_is_refused(asked, errand, argument, most):
    began, errors = time.monotonic(), []
    for number in range(3 * most):
        _, error, _, descriptors = asked(QUESTION.pack(number, errand, argument))
        errors.append(error)
        for descriptor in descriptors:
            os.close(descriptor)
    assert set(errors) == {0, errno.EAGAIN}
    assert errors[:most] == [0] * most
    assert errors.count(0) <= most + 1 + most * (time.monotonic() - began) / (1 if errand is Errand.STACK else 60)


def _comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
