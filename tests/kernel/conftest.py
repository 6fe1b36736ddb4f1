"""Kernel tests run as root on a kernel with BPF and BTF; elsewhere each of them skips and says why."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from kernel.command import leftovers
from kernel.traced import Traced

BTF = Path("/sys/kernel/btf/vmlinux")
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="session")
def requires_root() -> None:
    """Skip without root: attaching, namespaces and real-time priorities all need it."""
    if os.geteuid() != 0:
        pytest.skip("not root")


@pytest.fixture(scope="session")
def requires_bpf(requires_root: None) -> None:
    """Skip where no probe could attach: no BTF, or no bcc in the system's Python."""
    if not BTF.exists():
        pytest.skip(f"no {BTF}: this kernel was built without BTF")
    try:
        subprocess.run([SYSTEM_PYTHON, "-c", "import bcc"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"{SYSTEM_PYTHON} has no bcc (Debian: python3-bpfcc)")


@pytest.fixture(autouse=True)
def _kernel(requires_bpf: None) -> None:
    """Every test in this folder needs both."""


@pytest.fixture(autouse=True, scope="session")
def _own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is left behind is looked for there (``kernel.command.leftovers``): others may run foreshock meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp() / "temporary"
        folder.mkdir()
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Fail where the test leaves processes, mounts or temporary folders behind."""
    before = leftovers()
    yield
    assert leftovers() <= before


@pytest.fixture
def attach() -> Iterator[Callable[..., Traced]]:
    """Return a function that attaches the named probes, ``attach("softirq", SOFTIRQ_THRESHOLD_NS=1)``.

    They are detached after the test.
    """
    with ExitStack() as undo:

        def traced(*names: str, **constants: int) -> Traced:
            traced = Traced(names, **constants)
            undo.callback(traced.close)
            return traced

        yield traced


@pytest.fixture
def namespaces(requires_root: None) -> Iterator[Callable[[], str]]:
    """Return a function that makes a network namespace with its loopback up and returns its name.

    Deleted after the test, with the devices that were moved into it.
    """
    numbers = count()
    with ExitStack() as undo:

        def make() -> str:
            name = f"foreshock-{os.getpid()}-{next(numbers)}"
            _ip("netns", "add", name)
            undo.callback(_ip, "netns", "delete", name)
            _ip("-n", name, "link", "set", "lo", "up")
            return name

        yield make


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
