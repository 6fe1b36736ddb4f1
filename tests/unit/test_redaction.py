"""Reports and exports without names: nobody is named, numbers, the kernel's functions and our own words stay."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from unit.agent_samples import an_alert
from unit.blackbox_samples import sample_box
from unit.deep_samples import DEEP_HEADER, FRAME, OFF, SAMPLE, STACK
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node, hog_interval

from tracer import brackets
from tracer.alerts.alert import alert_id
from tracer.alerts.record import OCCASION, alert_record
from tracer.analysis.idle import OURS
from tracer.blackbox.redact import Redactor
from tracer.blackbox.unnamed import unnamed_alert
from tracer.commands import main
from tracer.escape import printable
from tracer.recording import RecordingWriter
from tracer.window import Window

KEY = b"0123456789abcdef"
#: Tasks that are called like words of ours, and like a function of the kernel.
WORDS = (b"CPU", b"softirq", b"wait", b"critical", b"nvme_wait", b"tasks", b"oncpu")
SECRETS = ("acme", "trainer", "customer", "hog", "python3", "nccl-proxy", "backup.service")
KERNEL = "nvme_wait"
COMMAND = (
    *("foreshock", "record", "--for", "1h30m", "--cgroup", "/customer", "--cpus=0-3", "--job", "acme", "--label"),
    *("image=5", "--label=owner=acme", "--probes", "softirq", "-otrainer.fsk", "--sink=json:acme"),
    *("--sink", "journald", "--closeup", "page", "--deep"),
)
KERNEL_COMMAND = (
    "BOOT_IMAGE=/vmlinuz-customer ip=10.1.2.3:::255.255.255.0:trainer:eth0 systemd.hostname=trainer quiet panic=30 "
    'isolcpus=managed_irq,2-3 console=ttyS0,115200 hugepages=64 dyndbg="file trainer.c +p" -- --addr 10.1.2.3:80 acme 5'
)
FRAMES = np.array(
    [
        (1, b"u", b"libacme.so", b"acme_step(int)"),
        (2, b"u", b"acme", b"[unknown acme+0x1f2]"),
        (3, b"k", b"[nvme]", KERNEL.encode()),
        (4, b"u", b"python-acme", b"py::train:/home/acme/train.py"),
        (5, b"u", b"", b"[unknown 0x7f00]"),
    ],
    FRAME,
)
STACKS = np.array([(71, 0, 3), (71, 1, 1), (72, 0, 2), (72, 1, 4), (73, 0, 5)], STACK)


def secret_windows(second: int) -> list[Window]:
    on = np.array([(0, 60, 60, b"trainer", 72, 40), (1, 61, 61, b"trainer", 73, 3)], SAMPLE)
    off = np.array([(0, 60 + at, 60, name, 71, SECOND // 9, 3, b"D") for at, name in enumerate(WORDS)], OFF)
    lines = np.zeros(1, [("time_ns", "u8"), ("serial", "u8"), ("level", "u1"), ("count", "u4"), ("text", "S256")])
    lines["text"] = b"trainer[60] of node-of-acme: segfault at 0 ip 0 in libacme.so, Comm: trainer"
    told = (STACKS, FRAMES) if second == 0 else (STACKS[:0], FRAMES[:0])
    start = START + second * SECOND
    rows = {"oncpu.samples": on, "offcpu.samples": off, "kernellog.lines": lines}
    rows |= {
        f"{probe}.{table}": one
        for probe in ("oncpu", "offcpu")
        for table, one in zip(("stacks", "frames"), told, strict=True)
    }
    return [Window(*name.split("."), start, start + SECOND, one, {"missed": 0}) for name, one in rows.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "key").write_bytes(KEY)
    node = Node(cpus=2)
    header = {**DEEP_HEADER, "host": "node-of-acme", "filters": {"cgroup": "/customer"}}
    header["command"], header["labels"] = list(COMMAND), {"image": "5", "owner": "acme"}
    header["fingerprint"] = {"host": "node-of-acme", "kernel": {"command_line": KERNEL_COMMAND}}
    with RecordingWriter(folder / "acme.fsk", header) as writer:
        for second in range(6):
            writer.write([*(hog_interval(node) if second == 3 else node.interval()), *secret_windows(second)])
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [one.replace("DIR", str(folder)) for one in arguments])
    assert result.exit_code == code, result.output
    return result


def tree(html: str) -> dict:
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', html)
    return Data(data).tree


def named(text: str, secrets: Sequence[str] = SECRETS) -> list[str]:
    return [secret for secret in (*secrets, "10.1.2.3") if secret in text]


def test_a_report_names_nobody_and_says_the_same(folder):
    pages = [
        run(folder, "report", "DIR/acme.fsk", "-o", "-", *more).stdout
        for more in ((), ("--redact", "--key", "DIR/key"))
    ]
    plain, hidden = map(tree, pages)
    assert not named(json.dumps(hidden)) and len(named(json.dumps(plain))) >= len(SECRETS) - 1
    assert not named(re.sub(r'<script id="data".*?</script>', "", pages[1]))
    for kept in ("headline", "normal", "missing", "time", "series", "lanes", "dropped"):
        assert hidden[kept] == plain[kept], kept
    # What to do is said of the same task by its other name.
    name = Redactor(KEY).name
    assert json.dumps(hidden["quality"]) == json.dumps(plain["quality"]).replace('"acme"', f'"{name("acme")}"')
    assert [name("acme"), "1", "4.8 s"] in next(one["table"]["rows"] for one in hidden["quality"] if "table" in one)
    for one, other in zip(plain["findings"], hidden["findings"], strict=True):
        told = re.sub(r"\bhog\b|/customer\b", lambda found: name(found[0]), one["next"])
        assert (other["next"], other["what"], other["series"]) == (told, one["what"], one["series"])
    assert dict(hidden["facts"])["probes"] == dict(plain["facts"])["probes"]
    assert dict(hidden["facts"])["host"] == name("node-of-acme")
    assert dict(hidden["facts"])["labels"] == f"image=5, owner={name('acme')}"
    customer, acme, output = map(name, ("/customer", "acme", "trainer.fsk"))
    assert dict(hidden["facts"])["command line"] == (
        f"foreshock record --for 1h30m --cgroup {customer} --cpus=0-3 --job {acme} "
        f"--label image=5 --label=owner={acme} --probes softirq -o{output} --sink=json:{acme} "
        f"--sink journald --closeup page --deep"
    )
    on, off = ({one["name"]: one for one in hidden["flames"]}[name] for name in ("oncpu", "offcpu"))
    assert {one for one, kind, _ in off["names"] if kind == "t"} - {"all"} == {name(word.decode()) for word in WORDS}
    assert [one for one, kind, _ in off["names"] if kind == "k"] == [KERNEL] and "[nvme]" in off["modules"]
    functions = {one for one, kind, _ in on["names"] if kind == "u"}
    python = f"py::{name('train:/home/acme/train.py')}"
    assert functions == {f"[unknown {name('acme')}+0x1f2]", python, "[unknown 0x7f00]"}
    assert on["total"] == plain["flames"][0]["total"]


def test_text_and_exports_name_nobody(folder):
    texts = [run(folder, "report", "DIR/acme.fsk", "--text", "--redact", "--baseline", "DIR/acme.fsk").stdout]
    for form in ("folded", "speedscope", "json"):
        texts.append(run(folder, "export", "DIR/acme.fsk", "--format", form, "--redact").stdout)
    for text in texts:
        assert not named(text) and KERNEL in text
    run(folder, "export", "DIR/acme.fsk", "--format", "csv", "--redact", "-o", "DIR/csv")
    with open(folder / "csv" / "kernellog.lines.csv") as file:
        (line, *_) = csv.DictReader(file)
    assert not named(line["text"]) and re.match(r"h-\w{10}\[60\] of h-\w{10}: segfault at 0 ip 0", line["text"])
    rows = json.loads(texts[-1])["windows"]
    plain = json.loads(run(folder, "export", "DIR/acme.fsk", "--format", "json").stdout)["windows"]
    numbers = [
        [[v for v in row.values() if not isinstance(v, str)] for one in all for row in one["rows"]]
        for all in (rows, plain)
    ]
    assert numbers[0] == numbers[1]


def test_of_the_kernels_command_line_only_words_of_its_own_stay(folder):
    plain, hidden = (
        json.loads(run(folder, "export", "DIR/acme.fsk", "--format", "json", *more).stdout)["header"]["fingerprint"]
        for more in ((), ("--redact", "--key", "DIR/key"))
    )
    assert plain["kernel"]["command_line"] == KERNEL_COMMAND
    name = Redactor(KEY).name
    ip, quoted = name("10.1.2.3:::255.255.255.0:trainer:eth0"), name('"file trainer.c +p"')
    assert hidden["kernel"]["command_line"] == (
        f"BOOT_IMAGE={name('/vmlinuz-customer')} ip={ip} systemd.hostname={name('trainer')} quiet panic=30 "
        f"isolcpus=managed_irq,2-3 console=ttyS0,115200 hugepages=64 dyndbg={quoted} "
        f"-- --addr {name('10.1.2.3:80')} {name('acme')} 5"
    )
    said = Redactor(KEY).text(f"Kernel command line: {KERNEL_COMMAND}")
    assert said == f"Kernel command line: {hidden['kernel']['command_line']}"


@settings(deadline=None)
@given(
    st.one_of(
        st.ip_addresses().map(str),
        st.ip_addresses(v=6).map(lambda one: one.exploded),
        st.ip_addresses(v=4).map("::ffff:{}".format),
        st.binary(min_size=6, max_size=6).map(lambda one: one.hex(":")),
        st.binary(min_size=20, max_size=20).map(lambda one: one.hex("-")),
    ),
    st.sampled_from(("{}", "server {}:/export", "connect {}:8080", "[{}]:80", "eth0:{}: up", "ip={}::", "{}/24,")),
)
def test_no_address_stays_whatever_is_beside_it(address, around):
    told = Redactor(KEY).text(around.format(address))
    # What follows a colon may be part of it.
    assert told.startswith(f"{around.partition('{')[0]}h-") and address not in told
    if "." in address:
        assert told == around.format(Redactor(KEY).name(address)).replace("/export", Redactor(KEY).name("/export"))


def test_what_is_like_an_address_and_is_none_stays():
    for text in ("Linux 6.18.44-1", "at 12:34:56", "0000:3b:00.0: link", "ns::Class", "1.2.3", "300.1.2.3", "[a::z]"):
        assert Redactor(KEY).text(text) == text
    assert Redactor(KEY).text("e1000e: version 3.2.6.1, 10.0.0.7").startswith("e1000e: version 3.2.6.1, h-")


def test_words_of_ours_in_brackets_stay_and_names_within_them_go():
    redactor = Redactor(KEY)
    assert all(redactor.function(one) == one for one in brackets.OWN)
    assert redactor.function("[unknown 0x7f00]") == "[unknown 0x7f00]"
    # They are spelt in one place.
    spelt = {
        node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        for path in Path(brackets.__file__).parent.rglob("*.py")
        if path.name != "brackets.py"
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    }
    assert not [one for one in spelt if re.fullmatch(r"\[[a-z]{3,}( [a-z: ]+)?\]", one)]


@given(st.text(min_size=1, max_size=15).map("ZQ{}".format))
def test_of_who_ran_before_another_program_only_the_name_goes(name):
    redactor = Redactor(KEY)
    gone = (f"{brackets.BEFORE_EXEC}{{}}]", f"{brackets.UNRECORDED}{{}}]")
    for around in (*gone, f"{brackets.UNKNOWN_AT}{{}}+0x1f]", "py::{}", "{}", "{}+0x1f"):
        assert redactor.function(around.format(name)) == around.format(redactor.name(name))


def test_the_id_of_an_alert_tells_no_name():
    alert = an_alert()
    assert alert.id == alert_id(alert.boot_id, alert.rule, alert.condition.subject, alert.began_ns)
    ids = [unnamed_alert(alert, Redactor(key)).id for key in (KEY, KEY, b"another key of 16")]
    assert ids[0] == ids[1] != ids[2] and alert.id not in ids and all(re.fullmatch("[0-9a-f]{16}", one) for one in ids)


def test_a_name_is_hidden_where_its_row_says_that_it_is_a_tasks():
    rows = np.array([(b"task", b"trainer"), (b"own", b"CPU"), (b"vector", b"TIMER"), (b"cgroup", b"/acme")],
                    [("kind", "S8"), ("name", "S16")])  # fmt: skip
    redactor, window = Redactor(KEY), Window("ledger", "taken", 0, SECOND, rows)
    redactor.learn_windows([window])
    name = redactor.name
    assert [one.decode() for one in redactor.window(window).rows["name"].tolist()] == [
        *(name("trainer"), name("CPU"), "TIMER", name("/acme"))
    ]
    assert redactor.text("trainer waits") == f"{name('trainer')} waits"


def test_the_root_cgroup_and_foreshock_are_nobodys_names():
    """A hash of the root would look like a cgroup that the waiting task and the one that held it up share."""
    redactor, nobodys = Redactor(KEY), ["", "/", "others", *(name.decode() for name in OURS)]
    assert list(map(redactor.name, nobodys)) == nobodys and redactor.name("/job") != "/job"


def test_hashes_are_the_same_with_a_key_and_in_both_recordings(folder):
    report = ("report", "DIR/acme.fsk", "-o", "-", "--redact")
    keyed = [run(folder, *report, "--key", "DIR/key").stdout for _ in range(2)]
    assert keyed[0] == keyed[1] != run(folder, *report).stdout
    page = run(folder, *report, "--baseline", "DIR/acme.fsk").stdout
    (beside,) = re.findall(r'<script type="application/octet-stream">(.*?)</script>', page)
    assert Data(beside).tree["flames"][0]["names"] == tree(page)["flames"][0]["names"]


def test_a_black_box_names_nobody_either(tmp_path):
    box = sample_box(tmp_path / "cu39.fbx")
    page = run(tmp_path, "report", str(box), "-o", "-", "--redact").stdout
    (told,) = (one for one in tree(page)["marks"] if one["kind"] == "alert")
    assert told["alert"]["rule"] == "soft-lockup" and "cu39" not in json.dumps(tree(page))


def test_what_can_be_read_once_only_is_one_line_with_a_hint(folder):
    data = (folder / "acme.fsk").read_bytes()
    result = CliRunner().invoke(main, ["export", "-", "--format", "json", "--redact"], input=data)
    assert result.exit_code == 4 and "save it to a file first" in result.stderr, result.output
    assert "--key is for --redact" in run(folder, "report", "DIR/acme.fsk", "--key", "DIR/key", code=2).stderr


def test_who_woke_a_task_is_hidden_and_so_is_which_build_a_program_is():
    samples = np.array(
        [(b"t", 0, b"secret-waker"), (b"s", 3, b""), (b"t", 0, b"kworker/1:2")],
        [("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")],
    )
    frames = np.array(
        [(b"k", b"[nvme]", b"nvme_wait", b""), (b"u", b"secret", b"Secret::run", b"5f" * 20)],
        [("kind", "S1"), ("module", "S64"), ("symbol", "S192"), ("build_id", "S40")],
    )
    redactor, windows = (
        Redactor(KEY),
        [Window("offcpu", "samples", 0, 1, samples), Window("offcpu", "frames", 0, 1, frames)],
    )
    redactor.learn_windows(windows)
    samples, frames = (redactor.window(one).rows for one in windows)
    name = redactor.name("secret-waker").encode()
    assert samples.tolist() == [(b"t", 0, name), (b"s", 3, b""), (b"t", 0, b"kworker/1:2")]
    assert frames["build_id"].tolist() == [b"", b""] and frames["symbol"][0] == b"nvme_wait"
    assert b"ecret" not in frames.tobytes()


#: What nobody's words begin with, so that what is found of it is a name.
NAMES = st.lists(
    st.text(st.sampled_from("abz0_-.:/[]()<>&; '\"%\\é\u202e"), min_size=1, max_size=8).map("ZQ{}K".format),
    min_size=8,
    max_size=8,
    unique=True,
)


def renamed(window: Window, names: Sequence[str], turn: int) -> Window:
    """Return a window whose tasks, cgroups and programs are called by ``names``, in turn."""
    rows, encoded = window.rows.copy(), [name.encode() for name in names]
    theirs = rows["kind"] != b"k" if window.table == "frames" else np.ones(len(rows), bool)
    for place, column in enumerate(
        ("comm", "holder_comm", "waker_comm", "cgroup", "holder_cgroup", "module", "symbol")
    ):
        if column in (rows.dtype.names or ()):
            told = [encoded[(place + row + turn) % len(encoded)] for row in range(len(rows))]
            rows[column] = np.where(theirs, np.array(told, rows[column].dtype), rows[column])
    if window.table == "lines":
        rows["text"] = b"Comm: %s, %s[60] of %s: segfault in %s" % tuple(encoded[:4])
    return replace(window, rows=rows)


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(names=NAMES)
def test_no_name_of_the_recording_is_anywhere_in_what_is_redacted(tmp_path: Path, names: list[str]):
    node, alert = Node(cpus=2), an_alert(stack=("spin_work",), node=names[4])
    culprit = replace(alert.condition.culprit, task=f"{names[5]}[7]", context=f"softirq of {names[6]}[8]")
    condition = replace(alert.condition, summary=f"{names[7]}[9] is stuck", culprit=culprit)
    alert = replace(alert, condition=condition)
    header = {**DEEP_HEADER, "host": names[0], "labels": {"owner": names[1]}, "filters": {"cgroup": f"/{names[2]}"}}
    header |= {"command": ["foreshock", "record", "--cgroup", f"/{names[2]}", "--label", f"owner={names[1]}"]}
    with RecordingWriter(tmp_path / "x.fsk", {**header, OCCASION: alert_record(alert)}, overwrite=True) as writer:
        for second in range(3):
            windows = [*(hog_interval(node) if second == 1 else node.interval()), *secret_windows(second)]
            writer.write([renamed(window, names, second) for window in windows])
    plain = run(tmp_path, "export", "DIR/x.fsk", "--format", "json").stdout
    assert all(json.dumps(name, ensure_ascii=False)[1:-1] in plain for name in names if printable(name) == name)
    page = run(tmp_path, "report", "DIR/x.fsk", "-o", "-", "--redact").stdout
    texts = [
        json.dumps(tree(page), ensure_ascii=False),
        re.sub(r'<script id="data".*?</script>', "", page),
        run(tmp_path, "report", "DIR/x.fsk", "--text", "--redact").stdout,
        run(tmp_path, "export", "DIR/x.fsk", "--format", "json", "--redact").stdout,
    ]
    for text in texts:
        assert not re.findall(r".{0,60}ZQ.{0,60}", text)
