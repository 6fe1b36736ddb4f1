"""Jobs and ranks by cgroups and environment: what launchers write, what anybody may write, and nothing else kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sim.recordings import DEMO, slower, twin, write_twins

from tracer.analysis.jobs import Jobs, ranges
from tracer.analysis.source import Source
from tracer.commands import main
from tracer.kernel.jobs import Labels, chosen, labels
from tracer.kernel.readers.jobs import _ROW
from tracer.recording import RecordingWriter, read_recording
from tracer.window import Window

ID = b"4f0c2b7a9e61d8834f0c2b7a9e61d8834f0c2b7a9e61d8834f0c2b7a9e61d883"
UID = b"1b7e5c1e-52a9-4a6e-9d0e-0d4b6e3a7f21"


def environ(**variables: str) -> bytes:
    return b"\0".join(f"{name}={value}".encode() for name, value in variables.items()) + b"\0"


def test_only_the_named_variables_are_kept():
    kept = chosen(environ(AWS_SECRET_ACCESS_KEY="hunter2", SLURM_JOB_ID="48213", MY_RANK="3", RANK="3", PATH="/RANK=9"))
    assert kept == b"SLURM_JOB_ID=48213\0RANK=3"


def test_values_are_bounded_and_the_first_of_two_counts():
    assert chosen(b"RANK=1\0RANK=2\0POD_NAME=" + b"x" * 5000) == b"RANK=1\0POD_NAME=" + b"x" * 64
    assert chosen(b"") == chosen(b"=\0RANK\0\0\xff\xfe=1") == b""


def test_a_slurm_step_with_torchrun_in_it_has_torchruns_ranks():
    slurm = {
        "SLURM_JOB_ID": "48213",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "4",
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "8",
    }
    found = labels(chosen(environ(**slurm, SLURM_NODEID="4", RANK="37", LOCAL_RANK="5", WORLD_SIZE="64")), [b"/"])
    assert found == Labels(b"48213", b"0", 37, 5, 64, 4)
    alone = labels(chosen(environ(**slurm)), [b"/"])
    assert (alone.rank, alone.local_rank, alone.world_size, alone.node) == (4, 0, 8, -1)


@pytest.mark.parametrize(
    "variables, rank",
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "16"}, (3, 1, 16)),
        ({"PMI_RANK": "3", "MPI_LOCALRANKID": "1", "PMI_SIZE": "16"}, (3, 1, 16)),
        ({"RANK": "3", "WORLD_SIZE": "16"}, (3, -1, 16)),
        ({"RANK": "sergeant", "WORLD_SIZE": "16"}, (-1, -1, -1)),
        ({"RANK": "3"}, (-1, -1, -1)),
        ({"RANK": "-1", "WORLD_SIZE": "99999999999999999999"}, (-1, -1, -1)),
    ],
)
def test_ranks_are_those_of_the_launcher_that_says_how_many_there_are(variables: dict[str, str], rank: tuple[int, ...]):
    found = labels(chosen(environ(**variables)), [])
    assert (found.rank, found.local_rank, found.world_size) == rank


@pytest.mark.parametrize(
    "path, job, step",
    [
        (b"/system.slice/slurmstepd.scope/job_48213/step_0/user/task_3", b"48213", b"0"),
        (b"/system.slice/cu39_slurmstepd.scope/job_48213/step_batch/user/task_special", b"48213", b"batch"),
        (b"/slurm/uid_1000/job_48213/step_extern/task_0", b"48213", b"extern"),
        (b"/slurm_cu39/uid_1000/job_48213", b"48213", b""),
        (b"/system.slice/my_job_48213.service", b"", b""),
    ],
)
def test_slurms_cgroups_name_the_job_and_the_step(path: bytes, job: bytes, step: bytes):
    found = labels(b"", [b"/", path])
    assert (found.job, found.step) == (job, step)


def test_a_cgroup_is_believed_more_than_a_variable():
    found = labels(chosen(environ(SLURM_JOB_ID="1", SLURM_STEP_ID="7")), [b"/slurm/uid_0/job_48213/step_0"])
    assert (found.job, found.step) == (b"48213", b"0")


@pytest.mark.parametrize(
    "path",
    [
        b"/kubepods/burstable/pod" + UID + b"/" + ID,
        b"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
        + UID.replace(b"-", b"_")
        + b".slice/cri-containerd-"
        + ID
        + b".scope",
        b"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod"
        + UID.replace(b"-", b"_")
        + b".slice/crio-"
        + ID
        + b".scope/container",
        b"/system.slice/containerd.service/kubepods-besteffort-pod"
        + UID.replace(b"-", b"_")
        + b".slice:cri-containerd:"
        + ID,
    ],
)
def test_a_pod_is_told_by_its_cgroup_and_called_by_its_name(path: bytes):
    found = labels(b"", [path])
    assert (found.pod.replace(b"_", b"-"), found.container) == (UID, ID[:12])
    named = labels(chosen(environ(HOSTNAME="llama-7", POD_NAMESPACE="train")), [path])
    assert (named.pod, named.namespace) == (b"llama-7", b"train")


@pytest.mark.parametrize(
    "path", [b"/docker/" + ID, b"/system.slice/docker-" + ID + b".scope", b"/machine.slice/libpod-" + ID + b".scope"]
)
def test_a_container_alone_is_one_and_its_hostname_no_pod(path: bytes):
    assert labels(chosen(environ(HOSTNAME="cu39")), [path]) == Labels(container=ID[:12])


def test_a_shell_on_the_node_belongs_to_nothing():
    assert (
        labels(chosen(environ(HOSTNAME="cu39", HOME="/root")), [b"/user.slice/user-0.slice/session-1.scope"])
        == Labels()
    )


def row(pid: int, rank: int = -1, job: bytes = b"48213", **more: object) -> tuple[object, ...]:
    values = {
        "pid": pid,
        "began_ns": pid,
        "used_ns": 0,
        "ended": 0,
        "rank": rank,
        "local_rank": -1,
        "world_size": 64,
        "node": 4,
    }
    values |= {
        "job": job,
        "step": b"0",
        "pod": b"",
        "namespace": b"",
        "container": b"",
        "comm": b"python",
        "cgroup": b"/",
    } | more
    return tuple(values[name] for name in _ROW.names or ())


def members(*rows: tuple[object, ...], end_ns: int = 10**9) -> Window:
    return Window("jobs", "members", 0, end_ns, np.array([*rows], _ROW), {})


def test_parties_are_told_with_their_ranks():
    jobs = Jobs()
    pod = row(9, job=b"", world_size=-1, node=-1, step=b"", pod=b"dcgm-x", namespace=b"gpu", container=ID[:12])
    jobs.add(members(*(row(100 + rank, rank) for rank in (32, 33, 34, 39)), pod))
    assert jobs.sentences(9) == ["ranks 32-34, 39 of 64 of job 48213, step 0", "pod gpu/dcgm-x (pid 9)"]
    source = Source(jobs=jobs)
    assert source.task("python", 8888, 134) == "python[8888] (rank 34 of job 48213)"
    assert source.task("dcgm", 9) == "dcgm[9] (pod gpu/dcgm-x)"
    assert source.task("bash", 7) == "bash[7]"


def test_a_number_means_its_latest_process():
    jobs = Jobs()
    jobs.add(members(row(5, 1), row(5, 1, ended=1)))
    jobs.add(members(row(5, 2, began_ns=99), end_ns=2 * 10**9))
    assert [(one.rank, one.ended) for one in jobs.members()] == [(1, True), (2, False)]
    assert jobs.of(0, 5).rank == 2  # type: ignore[union-attr]


def test_names_are_quoted_and_memory_is_bounded():
    jobs = Jobs()
    jobs.add(members(row(1, 3, job=b'x" is fine')))
    assert jobs.of(1).title == 'rank 3 of job "x\\" is fine"'  # type: ignore[union-attr]
    for number in range(6):
        jobs.add(members(*(row(2 + number * 2000 + place) for place in range(2000))))
    assert len(jobs.members()) == 4096


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros(2, [("pid", "S4")]),
        np.zeros(2, [("pid", "f8"), ("rank", "f8")]),
        np.zeros(2, [("cpu", "u4")]),
        np.full(2, 2**64 - 1, [("pid", "u8"), ("rank", "u8"), ("began_ns", "u8")]),
    ],
)
def test_rows_of_anyone_do_no_harm(rows: np.ndarray):
    jobs = Jobs()
    jobs.add(Window("jobs", "members", 0, 1, rows, {}))
    assert len(jobs.sentences(5)) <= 2


def test_numbers_are_told_as_ranges():
    assert ranges([]) == "" and ranges([3]) == "3" and ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


@pytest.mark.parametrize(
    "label", ["rack", "=r12", "ra ck=1", "rack=", "rack= ", "9=1", "rack=" + "x" * 201, "\x1b[2J=1"]
)
def test_labels_that_can_not_be_are_usage_errors(label: str, tmp_path: Path):
    done = CliRunner().invoke(main, ["record", "-o", str(tmp_path / "x.fsk"), "--label", label])
    assert done.exit_code == 2 and "--label" in done.stderr and "\x1b" not in done.stderr
    assert not (tmp_path / "x.fsk").exists()


@pytest.mark.parametrize(
    "names, said", [([*map(str, range(33))], "33 labels: 32 at most"), (["1", "1"], "given twice")]
)
def test_labels_are_bounded_and_each_is_given_once(names: list[str], said: str, tmp_path: Path):
    given = [part for name in names for part in ("--label", f"n{name}=1")]
    done = CliRunner().invoke(main, ["record", "-o", str(tmp_path / "x.fsk"), *given])
    assert done.exit_code == 2 and said in done.stderr


def with_rank(source: Path, target: Path, pid: int) -> Path:
    """Write a recording again, on whose node that process was rank 37."""
    recording = read_recording(source)
    with RecordingWriter(target, recording.header, overwrite=True) as writer:
        for windows in recording.intervals:
            first = windows[0]
            rows = np.array([row(pid, 37, began_ns=1)], _ROW)
            writer.write([*windows, Window("jobs", "members", first.start_ns, first.end_ns, rows, {})])
    return target


@pytest.fixture(scope="module")
def waiting() -> int:
    """The process that waits most in the sample."""
    worst = [
        w.rows for windows in read_recording(DEMO).intervals for w in windows if w.table == "worst" and len(w.rows)
    ]
    rows = [one for rows in worst if "wait_ns" in (rows.dtype.names or ()) for one in rows]
    return int(max(rows, key=lambda one: int(one["wait_ns"]))["tgid"])


def test_a_summary_says_which_rank_waited(tmp_path: Path, waiting: int):
    path = str(with_rank(DEMO, tmp_path / "rank.fsk", waiting))
    said = CliRunner(env={"COLUMNS": "120"}).invoke(main, ["summary", path]).stdout
    assert "WHOSE NODE IT WAS" in said and "37 of 64" in said
    assert f"victim[{waiting}] (rank 37 of job 48213)" in said
    tree = json.loads(CliRunner().invoke(main, ["summary", "--json", path]).stdout)
    assert [(one["pid"], one["rank"], one["job"], one["pod"]) for one in tree["jobs"]] == [(waiting, 37, "48213", None)]


def test_compare_names_the_rank_on_the_straggler(tmp_path: Path, waiting: int):
    healthy = write_twins(tmp_path, 8, seconds=24)
    late = slower(("runqueue", "wait"), 40, since=10)
    ill = twin(tmp_path / "ill.fsk", read_recording(DEMO), "cu39", seed=39, seconds=24, change=late)
    done = CliRunner().invoke(main, ["compare", *healthy, str(with_rank(ill, tmp_path / "cu39.fsk", waiting))])
    said = " ".join(done.stdout.split())
    assert said.startswith("node cu39 is the straggler: run-queue wait")
    assert "; rank 37 of job 48213 waited" in said.partition("9 nodes,")[0]
