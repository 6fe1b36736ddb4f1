"""Names of kernel code in the agent and in its sentinels, of modules that are loaded later as well."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.agent import symbols
from tracer.agent.latest import Latest
from tracer.agent.symbols import Symbols
from tracer.kernel.symbols.kallsyms import Kallsyms

CORE = "ffffffff81000000 T schedule\n"
NFS = "ffffffffc0000000 t nfs_wait\t[nfs]\n"
PROGRAM = "ffffffffd0000000 t bpf_prog_{}\t[bpf]\n"
LAB = "ffffffffc0100000 t spin\t[lab]\n"
SCHEDULE, NFS_WAIT, PROG, SPIN = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000010, 0xFFFFFFFFD0000010, 0xFFFFFFFFC0100010


class Node:
    """What /proc has: ``text`` of kallsyms, ``modules``, and how often the first was read."""

    def __init__(self) -> None:
        self.text = CORE + NFS
        self.modules = "nfs 16384 0 - Live 0xffffffffc0000000\n"
        self.reads = 0

    def read(self) -> Kallsyms:
        self.reads += 1
        return Kallsyms(self.text.encode(), self.modules.encode())

    def load(self) -> None:
        self.text += LAB
        self.modules += "lab 16384 0 - Live 0xffffffffc0100000\n"


@pytest.fixture
def node(monkeypatch) -> Node:
    made = Node()
    monkeypatch.setattr(symbols.Kallsyms, "of_running_kernel", made.read)
    monkeypatch.setattr(symbols, "_listing", lambda: made.modules)
    return made


def in_a_child(answer: Callable[[], object]) -> Callable[[], str]:
    """Fork now; return what, when it is called, has the child make its answer, as text."""
    (go, start), (result, out) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.read(go, 1)
        os.write(out, str(answer()).encode())
        os._exit(0)

    def ask() -> str:
        os.write(start, b"g")
        os.waitpid(pid, 0)
        text = os.read(result, 4096).decode()
        for descriptor in (go, start, result, out):
            os.close(descriptor)
        return text

    return ask


def test_a_sentinel_knows_modules_that_were_loaded_after_it_was_forked(node):
    found = Symbols()
    ask = in_a_child(lambda: (found.symbol(SPIN), found.symbol(NFS_WAIT), found.symbol(SCHEDULE)))
    node.load()
    found.refresh()
    assert ask() == str((("spin", "lab"), ("nfs_wait", "nfs"), ("schedule", "")))


def test_they_are_refreshed_beside_whatever_this_process_does(node):
    found = Symbols()
    found.keep()
    assert found.symbol(SPIN) == (f"{SPIN:#x}", "")
    ask = in_a_child(lambda: found.symbol(SPIN))
    node.load()
    limit = time.monotonic() + 10
    while found.symbol(SPIN)[0] != "spin":
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert ask() == str(("spin", "lab"))
    found.close()


def test_in_this_kernel_both_find_the_same():
    found = Symbols()
    lines = Path("/proc/kallsyms").read_text().splitlines()
    address = next(int(line[:16], 16) for line in lines if line.split()[1:] == ["T", "schedule"])
    ask = in_a_child(lambda: found.symbol(address + 4))
    found._latest.write(symbols._now())
    assert ask() == str(("schedule", "")) == str(found.symbol(address + 4))


def test_they_are_read_again_when_a_module_came_and_for_a_name_alone_once_a_minute(node):
    found = Symbols()
    assert found.symbol(SPIN) == (f"{SPIN:#x}", "")
    found.refresh()
    assert node.reads == 2, "the name was missing"
    found.symbol(1)
    found.refresh()
    assert node.reads == 2, "not again within a minute"
    node.modules = node.modules.replace(" 0 ", " 5 ")  # in use
    found.refresh()
    assert node.reads == 2
    node.load()
    found.refresh()
    assert node.reads == 3 and found.symbol(SPIN) == ("spin", "lab")


def test_code_that_comes_and_goes_has_a_name_only_from_a_table_read_since_it_was_seen(node):
    node.text += PROGRAM.format("1_old")
    found = Symbols()
    # Loaded since: the table has its neighbour.
    node.text = CORE + NFS + PROGRAM.format("2_new")
    assert found.symbol(PROG) == (f"{PROG:#x}", "")
    found.refresh()
    assert found.symbol(PROG) == ("bpf_prog_2_new", "bpf")
    node.load()
    found.refresh()
    assert found.symbol(PROG) == (f"{PROG:#x}", ""), "other code may be there by now"


def test_what_was_read_stays_until_the_write_after_the_next():
    latest = Latest(10)
    assert latest.write(b"one")
    number, data = latest.read()
    assert latest.write(b"another") and bytes(data) == b"one" and latest.number == number + 1
    assert bytes(latest.read()[1]) == b"another"
    assert not latest.write(b"x" * 5000), "it has its end"
    assert bytes(latest.read()[1]) == b"another"
