"""``foreshock record`` from end to end: what it writes, how it ends, and that every failure is one line and a hint."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kernel.command import AS_NOBODY, FORESHOCK, assert_fails, environment, foreshock

from tracer.errors import OutputError
from tracer.probes import all_probes
from tracer.recording import Recording, read_recording

LIGHT = {name for name, probe in all_probes().items() if probe.tier == "light"}
Start = Callable[..., "subprocess.Popen[str]"]

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.fsk"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Return a function that starts recording to ``path`` and waits until the first intervals are in it."""
    with ExitStack() as undo:

        def _start(*arguments: str, wait: bool = True, **options: object) -> subprocess.Popen[str]:
            options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
            command = [*FORESHOCK, "record", "-o", str(path), "--interval", "100ms", *arguments]
            running = subprocess.Popen(command, cwd="/", env=environment(), **options)  # type: ignore[call-overload]
            undo.callback(end, running)
            if wait:
                wait_for(lambda: grown(path), running)
            return running  # type: ignore[no-any-return]

        yield _start


def end(running: subprocess.Popen[str]) -> None:
    running.kill()
    running.wait()
    for stream in (running.stdout, running.stderr):
        if stream:
            stream.close()


def grown(path: Path) -> bool:
    """Tell whether more than the header is in the file."""
    return path.exists() and len(read_recording(path).intervals) >= 2


def wait_for(condition: Callable[[], object], running: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert running.poll() is None and time.monotonic() < limit, "it ended, or did not start"
        time.sleep(0.05)


def assert_whole(recording: Recording, intervals: int = 1) -> None:
    assert recording.truncated is None and not recording.warning
    assert len(recording.intervals) >= intervals


# What it writes


def test_the_default_run(tmp_path: Path) -> None:
    began = time.time()
    done = foreshock("record", "--for", "2s", "--interval", "200ms", "-o", f"{tmp_path}/%h-%t.fsk")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(f"{os.uname().nodename}-20") and path.name.endswith("Z.fsk")
    assert "VERDICT" in done.stdout and done.stdout.endswith(f"recording: {path}\n")
    assert done.stderr == ""
    recording = read_recording(path)
    assert_whole(recording)
    header = recording.header
    assert header["host"] == os.uname().nodename and header["interval_ns"] == 200_000_000
    assert {probe["name"] for probe in header["probes"]} == LIGHT and not header["refused"]
    # A late interval swallows the next, so fewer than ten is all right on a busy machine; a gap never is.
    assert 5 <= len(recording.intervals) <= 11
    ends: dict[tuple[str, str], int] = {}
    for interval in recording.intervals:
        assert {(window.probe, window.table) for window in interval} >= ends.keys()
        for window in interval:
            assert window.start_ns == ends.setdefault((window.probe, window.table), window.start_ns)
            assert window.start_ns < window.end_ns
            ends[window.probe, window.table] = window.end_ns
    first, last = recording.intervals[0][0].start_ns, recording.intervals[-1][0].end_ns
    assert (last - first) / 1e9 == pytest.approx(2, abs=0.6)
    assert (first + header["clock_offset_ns"]) / 1e9 == pytest.approx(began, abs=30)


def test_quiet_says_nothing_and_filters_are_written_down(path: Path) -> None:
    command = ["record", "--for", "200ms", "--quiet", "-o", str(path), "--pid", str(os.getpid()), "--cpus", "0"]
    done = foreshock(*command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recording = read_recording(path)
    assert_whole(recording)
    assert recording.header["filters"] == {"pid": str(os.getpid()), "cpus": "0"}
    assert recording.header["command"] == ["foreshock", *command]
    assert {probe["name"] for probe in recording.header["probes"]} == {"agent", "cpustate", "jobs", "runqueue"}


# How it ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_it_says_what_it_found(start: Start, path: Path, number: signal.Signals) -> None:
    running = start("--probes", "runqueue")
    running.send_signal(number)
    output, errors = running.communicate(timeout=30)
    assert running.returncode == 0, errors
    assert "VERDICT" in output and output.endswith(f"recording: {path}\n") and errors == ""
    assert_whole(read_recording(path), 2)


def test_asked_to_end_while_it_attaches_it_does_so_in_good_order(start: Start, path: Path) -> None:
    running = start("--probes", "runqueue", wait=False)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    wait_for(lambda: any("loader" in command_line(pid) for pid in children.read_text().split()), running)
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=30)
    assert (running.returncode, errors) == (0, "")
    assert output.endswith(f"recording: {path}\n")
    recording = read_recording(path)
    assert recording.truncated is None and recording.intervals == []


def test_asked_to_end_while_it_waits_for_a_pipe_to_be_read(start: Start, path: Path) -> None:
    os.mkfifo(path)
    running = start("--probes", "netdev", wait=False)
    # It looks every 50 ms whether somebody reads.
    wait_for(lambda: "nanosleep" in Path(f"/proc/{running.pid}/wchan").read_text(), running)
    running.send_signal(signal.SIGTERM)
    output, errors = running.communicate(timeout=30)
    assert (running.returncode, output) == (5, "") and "nobody has read from this pipe" in errors


def command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_killed_it_leaves_whole_intervals_and_nothing_attached(start: Start, path: Path) -> None:
    running = start("--probes", "runqueue")
    running.kill()
    running.wait()
    recording = read_recording(path)
    assert len(recording.intervals) >= 2 and not recording.damage
    assert recording.truncated is not None and "was cut off" in recording.warning
    done = foreshock("summary", str(path))
    # Lines break where the path's length has them break.
    assert done.returncode == 0 and "was cut off" in " ".join(done.stdout.split())


def test_a_full_disk_ends_it_and_what_was_written_can_be_read(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "foreshock-test", disk], check=True)
    try:
        path = disk / "node.fsk"
        done = foreshock("record", "--for", "60s", "--interval", "20ms", "--probes", "softirq", "-o", str(path))
        assert_fails(done, 5, "write failed after", "no space left on device", "free some space")
        recording = read_recording(path)
        assert len(recording.intervals) > 3 and not recording.damage
        assert recording.truncated == 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_reader_that_leaves_does_not_cost_the_recording(start: Start, path: Path) -> None:
    running = start("--for", "500ms", "--probes", "runqueue", wait=False)
    assert running.stdout is not None
    running.stdout.close()
    running.stdout = None
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (141, "")
    assert_whole(read_recording(path))


def test_notes_that_nobody_reads_do_not_cost_the_recording(start: Start, path: Path) -> None:
    running = start("--for", "500ms", "--pid", str(os.getpid()), wait=False)
    assert running.stderr is not None
    running.stderr.close()
    running.stderr = None
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 0 and "VERDICT" in output
    assert_whole(read_recording(path))


def test_without_any_terminal_or_stream(path: Path) -> None:
    closed = ("setsid", "-w", "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    done = foreshock("record", "--for", "300ms", "--probes", "runqueue", "-o", str(path), before=closed)
    assert (done.returncode, done.stdout, done.stderr) == (OutputError.exit_code, "", "")
    assert_whole(read_recording(path))
    path.unlink()
    done = foreshock("record", "--quiet", "--for", "300ms", "--probes", "runqueue", "-o", str(path), before=closed)
    assert done.returncode == 0, "who wants no summary needs no output"


def test_a_summary_that_can_not_be_written_is_an_error_and_the_recording_is_kept(path: Path) -> None:
    closed = ("sh", "-c", 'exec "$@" >&-', "sh")
    done = foreshock("record", "--for", "300ms", "--probes", "runqueue", "-o", str(path), before=closed)
    assert done.returncode == OutputError.exit_code
    assert done.stderr.splitlines()[0] == "foreshock: error: can't write the output: standard output is closed"
    assert f"the recording is kept: {path}" in done.stderr
    assert_whole(read_recording(path))


def test_reasons_are_told_once_and_cpus_that_there_are_none_of_are_named(path: Path) -> None:
    done = foreshock("record", "--for", "300ms", "--pid", str(os.getpid()), "--cpus", "0-4095", "-o", str(path))
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2 and " online; only " in notes[0]
    assert "cpustall, " in notes[1] and "left out: can't be limited to a process" in notes[1]
    assert read_recording(path).header["filters"]["cpus"] != "0-4095"


def test_on_a_terminal_it_shows_progress_and_one_that_is_closed_ends_it_well(start: Start, path: Path) -> None:
    user, program = pty.openpty()
    # Setting its own session and terminal needs a program in between; Popen knows only half of it.
    command = ["setsid", "--ctty", *FORESHOCK, "record", "-o", str(path), "--interval", "100ms", "--probes", "runqueue"]
    running = subprocess.Popen(command, cwd="/", env=environment(), stdin=program, stdout=program, stderr=program)
    os.close(program)
    try:
        limit, shown = time.monotonic() + 60, b""
        while b"recording: 1 s; Ctrl-C ends it" not in shown:
            assert time.monotonic() < limit
            shown += os.read(user, 4096)
        os.close(user)
        running.wait(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert_whole(read_recording(path), 2)


# What it refuses


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--probes", "runqeue"], 2, "unknown probe 'runqeue'; did you mean 'runqueue'?"),
        (["--probes", "softirq", "--pid", "1"], 2, "softirq can't be limited to a process"),
        (["--pid", str(2**22 + 1)], 2, "no such process"),
        (["--pid", "0"], 2, "'--pid'"),
        (["--cgroup", "/no/such/group"], 2, "no such cgroup"),
        (["--cpus", "two"], 2, "'two' is no list of CPUs"),
        (["--cpus", "0-"], 2, "'0-' is no list of CPUs"),
        (["--cpus", "4000"], 2, "none of them is online"),
        (["--interval", "0"], 2, "'0' is no duration"),
        (["--interval", "0s"], 2, "'0s' is too short"),
        (["--interval", "abc"], 2, "'abc' is no duration"),
        (["--interval", "0.0000001ms"], 2, "'0.0000001ms' is too short: 10ms to 60s"),
        (["--interval", "99999999999999999999h"], 2, "is too long: 10ms to 60s"),
        (["--interval", "61s"], 2, "is too long: 10ms to 60s; interrupts unused for 69 s"),
        (["--for", "9000h"], 2, "is too long: 10ms to 8784h"),
        (["--for", "0s"], 2, "'0s' is too short: 10ms to 8784h"),
        (["--for", "-1s"], 2, "'-1s' is no duration"),
        (["-o", "%q.fsk"], 2, "unknown sequence %q"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_can_not_be_is_refused_at_once(arguments: list[str], code: int, said: str) -> None:
    began = time.monotonic()
    assert_fails(foreshock("record", *arguments), code, said)
    assert time.monotonic() - began < 20


_IN_A_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")


def test_in_a_pid_namespace_no_pid_is_taken_for_another(tmp_path: Path) -> None:
    done = foreshock("record", "--pid", "1", before=_IN_A_PID_NAMESPACE)
    assert_fails(done, 2, "in this pid namespace the number is another process's")
    path = tmp_path / "own.fsk"
    done = foreshock("record", "--deep", "--for", "1s", "-o", str(path), before=_IN_A_PID_NAMESPACE)
    assert done.returncode == 0, done.stderr
    assert "not in the host's pid namespace" in done.stderr


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("/no/such/folder/node.fsk", "create the folder first"),
        ("/sys/kernel/node.fsk", "denied"),
        ("/proc/node.fsk", "choose another path"),
        ("/tmp", "is a folder"),
        ("/etc/passwd/node.fsk", "not a folder"),
        ("x" * 300, "choose a shorter name"),
    ],
    ids=lambda value: value[:20],
)
def test_where_it_can_not_write_it_says_so(output: str, said: str) -> None:
    assert_fails(foreshock("record", "--for", "1s", "--probes", "netdev", "-o", output), 5, said)


def test_an_existing_file_is_replaced_only_when_asked(path: Path) -> None:
    path.write_text("precious")
    recording = ("record", "--for", "100ms", "--probes", "netdev", "-o", str(path))
    assert_fails(foreshock(*recording), 5, f"{path} exists")
    assert path.read_text() == "precious"
    assert foreshock(*recording, "--overwrite").returncode == 0
    assert_whole(read_recording(path))


#: Run the rest of the command line where no netlink socket can be had, as under many a seccomp profile.
_WITHOUT_NETLINK = """
import ctypes, os, platform, struct, sys
socket = {"x86_64": 41, "aarch64": 198}[platform.machine()]
steps = [
    (0x20, 0, 0, 0), (0x15, 0, 3, socket),  # the call's number
    (0x20, 0, 0, 16), (0x15, 0, 1, 16),  # its first argument: AF_NETLINK
    (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7fff0000),  # EPERM, or allowed
]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code)))
assert ctypes.CDLL(None).prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_without_netlink_auto_goes_on_and_a_named_netdev_fails(path: Path) -> None:
    filtered = (sys.executable, "-c", _WITHOUT_NETLINK)
    said = "netdev left out: no rtnetlink socket: Operation not permitted"
    done = foreshock("record", "--for", "100ms", "-o", str(path), before=filtered)
    assert done.returncode == 0 and said in done.stderr, done.stderr
    recording = read_recording(path)
    assert "no rtnetlink socket" in recording.header["refused"]["netdev"]
    assert "cpustate" in [probe["name"] for probe in recording.header["probes"]]
    named = ("record", "--for", "100ms", "--probes", "auto,netdev", "-o", str(path.with_name("none.fsk")))
    assert_fails(foreshock(*named, before=filtered), 3, "netdev: no rtnetlink socket")
    assert not path.with_name("none.fsk").exists()


def test_a_thread_is_no_process(path: Path) -> None:
    code = """
import threading
def live():
    print(threading.get_native_id(), flush=True)
    input()
threading.Thread(target=live).start()
"""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", code]
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        done = foreshock("record", "--pid", other.stdout.readline().strip(), "-o", str(path))
        other.communicate("\n")
    assert_fails(done, 2, "no such process", "not of a thread")


def test_as_nobody_it_says_to_be_root(path: Path) -> None:
    if subprocess.run(
        [*AS_NOBODY, *FORESHOCK, "--version"], cwd="/", env=environment(), capture_output=True
    ).returncode:
        pytest.skip("nobody can't run this interpreter")
    assert_fails(foreshock("record", "-o", str(path), before=AS_NOBODY), 3, "not root", "sudo")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (("unshare", "-r"), "root of a user namespace only"),
        (("setpriv", "--bounding-set=-bpf,-sys_admin"), "root without CAP_BPF and CAP_PERFMON"),
    ],
)
def test_root_who_may_not_either_is_told_why(path: Path, before: tuple[str, ...], words: str) -> None:
    failed = foreshock("record", "-o", str(path), before=before)
    assert_fails(failed, 3, words, "in a container: ")
    assert "sudo" not in failed.stderr


def test_without_type_information_it_says_so(path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    hide = 'mount --bind "$0" /sys/kernel/btf/vmlinux && exec "$@"'
    done = foreshock("record", "-o", str(path), before=("unshare", "-m", "sh", "-c", hide, str(tmp_path / "empty")))
    assert_fails(done, 3, "the kernel's type information (/sys/kernel/btf/vmlinux) can't be read", "doctor")
    assert not path.exists()


def test_open_files_are_as_many_as_it_may_have_and_too_few_are_no_bug(path: Path) -> None:
    arguments = ("record", "-o", str(path), "--for", "200ms", "--interval", "100ms", "--quiet")
    assert foreshock(*arguments, before=("prlimit", "--nofile=40:4096")).stderr == ""
    path.unlink()
    assert_fails(foreshock(*arguments, before=("prlimit", "--nofile=32")), 3, "too many open files", "ulimit -n")
    assert not path.exists()


def test_where_nothing_else_can_be_written_it_records_all_the_same(path: Path, tmp_path: Path) -> None:
    (tmp_path / "writable").mkdir()
    lines = (
        'mount -t tmpfs none "$0"',
        "mount -o remount,bind,ro /",
        "for one in /run /dev/shm; do mount -t tmpfs -o ro none $one; done",
        'exec "$@" -o "$0/trace.fsk"',
    )
    before = ("unshare", "-m", "sh", "-ec", "; ".join(lines), str(tmp_path / "writable"))
    done = foreshock("record", "--for", "200ms", "--interval", "100ms", "--probes", "cpustate", before=before)
    assert done.returncode == 0 and "recording: " in done.stdout, done.stderr


@pytest.mark.parametrize("root", ["/proc", "/sys"])
def test_without_what_no_node_is_without_it_says_what_to_mount(path: Path, root: str) -> None:
    before = ("unshare", "-m", "sh", "-ec", 'mount -t tmpfs none "$0"; exec "$@"', root)
    done = foreshock("record", "--for", "1s", "--probes", "cpustate", "-o", str(path), before=before)
    assert done.returncode == 3 and done.stdout == ""
    error, hint = done.stderr.splitlines()[-2:]
    assert error == f"foreshock: error: {root} is not mounted" and hint.endswith(f" none {root}")


def test_in_a_time_namespace_no_time_would_be_right(path: Path) -> None:
    done = foreshock("record", "-o", str(path), before=("unshare", "--fork", "--time", "--monotonic=100"))
    assert_fails(done, 3, "time namespace", "nsenter")
    assert not path.exists()
