"""The command line as a whole: verbs found without importing them, failures as one line and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import click
import numpy as np
import pytest

import tracer.commands
from tracer.commands import GROUPS, main, verbs
from tracer.commands._options import DURATION
from tracer.commands._progress import Progress
from tracer.errors import NotAllowedError, RecordingError, UnavailableError
from tracer.kernel.interpreter import find_interpreter
from tracer.window import Window


def foreshock(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tracer", *arguments], capture_output=True, text=True, **options)


@pytest.fixture
def verb(monkeypatch, tmp_path):
    """Return a function that adds a verb ``shake`` whose body is the given function."""

    def add(body):
        (tmp_path / "shake.py").write_text('"""Shake the node.\n\nMore.\n"""\nGROUP = "Verify"\n')
        monkeypatch.setattr(tracer.commands, "__file__", str(tmp_path / "__init__.py"))
        module = types.ModuleType("tracer.commands.shake")
        module.shake = click.command("shake")(body)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return add


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    return exit_.value.code


def raising(error):
    def body():
        raise error

    return body


def test_help_groups_the_verbs(verb, capsys):
    verb(lambda: None)
    assert run("--help") == 0
    output = capsys.readouterr().out
    assert "Verify:\n  shake    Shake the node\n" in output
    assert "Investigate" not in output


def test_every_verb_has_a_group_a_summary_and_a_command():
    for verb in verbs().values():
        assert verb.group in GROUPS
        assert verb.summary
        assert main.get_command(click.Context(main), verb.name) is not None


def test_an_error_is_one_line_a_hint_and_its_exit_code(verb, capsys):
    verb(raising(RecordingError("a\x1b[2J\nb: cut off", hint="record it again")))
    assert run("shake") == RecordingError.exit_code
    assert capsys.readouterr().err == "foreshock: error: a\\x1b[2J\\x0ab: cut off\nhint: record it again\n"


def test_a_bug_is_one_line_and_its_traceback_on_demand(verb, capsys, monkeypatch):
    monkeypatch.delenv("FORESHOCK_DEBUG", raising=False)
    verb(raising(ZeroDivisionError("x")))
    assert run("shake") == 70
    error = capsys.readouterr().err
    assert error.startswith("foreshock: bug: ZeroDivisionError: x; please report")
    assert error.count("\n") == 1
    monkeypatch.setenv("FORESHOCK_DEBUG", "1")
    assert run("shake") == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_exits_130(verb, capsys):
    verb(raising(KeyboardInterrupt()))
    assert run("shake") == 130
    assert capsys.readouterr().err == "foreshock: interrupted\n"


def test_an_exit_code_that_a_verb_chose_stays(verb):
    verb(lambda: click.get_current_context().exit(9))
    assert run("shake") == 9


def test_misuse_names_the_nearest_verb(verb, capsys):
    verb(lambda: None)
    assert run("shak") == 2
    assert "did you mean 'shake'?" in capsys.readouterr().err
    assert run("shake", "--no-such") == 2
    error = capsys.readouterr().err
    assert error.startswith("foreshock: error: No such option")
    assert error.endswith("hint: foreshock shake --help\n")


def test_an_interpreter_that_may_not_be_executed_is_no_bug(tmp_path):
    def without(*arguments: str) -> subprocess.CompletedProcess[str]:
        # What workloads would be started with: as where this user, or this service, may not execute it.
        start = "import sys; from tracer.commands import main; sys.executable = sys.argv.pop(1); main()"
        command = [sys.executable, "-c", start, str(refused), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)

    refused = tmp_path / "python"
    refused.touch(0o644)
    checked = without("selftest")
    assert checked.returncode == UnavailableError.exit_code, checked.stderr
    assert "again, for workloads: permission denied." in checked.stdout and "FAIL" not in checked.stdout
    shown = without("demo", "--for", "5s")
    assert shown.returncode == 0 and "VERDICT" in shown.stdout and "can't trace here" in shown.stderr
    made = without("inject", "fifo-hog", "--yes")
    assert made.returncode == UnavailableError.exit_code and "hint: " in made.stderr


def test_no_name_leads_out_of_the_folder():
    assert run("../errors") == 2
    assert run("_failures") == 2


def test_the_exit_code_tells_what_standard_error_could_not():
    with open("/dev/full", "w") as full:
        for verb in (("top", "--once"), ("summary",)):
            command = [sys.executable, "-m", "tracer", *verb, "/nonexistent.fsk"]
            assert subprocess.run(command, stderr=full, check=False).returncode == 4


def test_top_of_a_damaged_recording_shows_what_is_good_and_exits_as_summary_does(tmp_path):
    damaged = bytearray(Path(tracer.__file__).with_name("sample").joinpath("demo.fsk").read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path = tmp_path / "damaged.fsk"
    path.write_bytes(damaged)
    for verb in (("top", "--once"), ("summary",)):
        done = foreshock(*verb, str(path))
        assert done.returncode == RecordingError.exit_code and " good intervals" in " ".join(done.stdout.split())


def test_an_encoding_without_our_signs_is_no_bug():
    def shown(*arguments: str) -> str:
        command = [sys.executable, "-m", "tracer", *arguments]
        environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
        return subprocess.run(command, capture_output=True, check=True, env=environment).stdout.decode("latin-1")

    sample = str(Path(tracer.__file__).with_name("sample") / "demo.fsk")
    assert " <= " in shown("top", "--once", sample)
    assert "≤" in json.loads(shown("summary", "--json", sample))["verdict"]["findings"][0]["what"]
    assert "probe " in shown("probes", "--no-measure")


def test_a_full_disk_is_an_error_not_a_bug():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tracer", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5
    assert done.stderr == (
        "foreshock: error: can't write the output: No space left on device\n"
        "hint: free some space, or send it elsewhere\n"
    )


def test_a_closed_output_is_an_error_with_its_exit_code():
    done = foreshock("--help", preexec_fn=lambda: os.close(1))
    assert done.returncode == 5
    assert done.stderr == (
        "foreshock: error: can't write the output: standard output is closed\nhint: give it one: > FILE, or | less\n"
    )


def test_who_may_not_trace_is_told_the_whole_command_again(verb, capsys, monkeypatch):
    verb(raising(NotAllowedError("not root.", hint="or so")))
    monkeypatch.setattr(sys, "argv", ["/usr/bin/env", "record", "-o", "a b.fsk"])
    assert run("shake") == UnavailableError.exit_code
    assert capsys.readouterr().err.endswith("hint: sudo /usr/bin/env record -o 'a b.fsk'; or so\n")
    monkeypatch.setattr(sys, "argv", ["/nowhere/__main__.py", "top"])
    run("shake")
    assert f"hint: sudo {sys.executable} -m tracer top; or so\n" in capsys.readouterr().err


@pytest.mark.parametrize("program", ["/bin/true", "/usr/bin/true", "/nonexistent"])
def test_a_chosen_python_that_is_none_is_named(program, monkeypatch):
    monkeypatch.setenv("FORESHOCK_PYTHON", program)
    find_interpreter.cache_clear()
    with pytest.raises(UnavailableError, match=f"^FORESHOCK_PYTHON={program} is no Python that has bcc"):
        find_interpreter()
    find_interpreter.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cpus", ""], "the list is empty"),
        (["--cpus", " "], "the list is empty"),
        (["--for", "30m1h"], "no duration"),
        (["--for", ""], "no duration"),
        (["--for", "1ms"], "too short: 10ms"),
    ],
)
def test_values_that_mean_nothing_are_refused(arguments, said, capsys):
    assert run("record", *arguments) == 2
    assert said in capsys.readouterr().err


def test_durations_add_up():
    assert DURATION.convert("1h30m", None, None) == 5400 * 10**9
    assert DURATION.convert("1.5s20ms", None, None) == 1520 * 10**6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "--replay", "-o", "x.fsk"], "-o would do nothing with --replay"),
        (["top", "x.fsk", "--once", "--probes", "napi", "--pid", "7"], "--probes, --pid would do nothing with a rec"),
        (["bundle", "--verify", "x", "--redact"], "--redact would do nothing with --verify"),
        (["inject", "--yes"], "--yes would do nothing without a fault"),
    ],
)
def test_options_without_effect_are_refused(arguments, said, capsys):
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_progress_counts_what_is_missing_since_the_start(capsys):
    progress = Progress(enabled=True)
    progress._line = True
    for losses in ({"collided": 1, "suppressed": 700}, {}, {"collided": 4}):
        progress.interval([Window("runqueue", "wait", 1, 2, np.zeros(0, [("cpu", "u4")]), losses)], None)
    said = [part.partition("Ctrl-C ends it")[2].strip() for part in capsys.readouterr().err.split("recording:")[1:]]
    assert said == ["; 1 event not seen so far", "; 1 event not seen so far", "; 5 events not seen so far"]


def test_a_reader_that_leaves_is_no_failure():
    endless = "import tracer.commands._failures as f\nwith f.failures():\n  while True: print('x' * 9999)"
    writer = subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer.stdout.read(1)
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait(10) == 141


def test_the_start_imports_nothing_it_does_not_need():
    listing = "import sys, tracer.commands as c; c.verbs(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyroute2", "msgpack", "tracer.kernel", "tracer.analysis"} & set(modules)


def test_version():
    assert foreshock("--version").stdout == f"foreshock, version {tracer.__version__}\n"


#: Ctrl-C at the moment when the command line's first module of others is imported.
INTERRUPTED_EARLY = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from tracer.__main__ import main
sys.argv[1:] = ["--version"]
main()
"""


# Said either way: what a shell starts in the background ignores it, and so would the tests' children.
@pytest.mark.parametrize(("signals", "code"), [("--default-signal=INT", 130), ("--ignore-signal=INT", 0)])
def test_ctrl_c_during_the_start_is_no_traceback(signals, code):
    command = ["env", signals, sys.executable, "-c", INTERRUPTED_EARLY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
