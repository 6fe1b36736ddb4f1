"""Symbols: fixed kernel text, maps as text, processes of a program made by gcc, ids of stacks."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracer.kernel.symbols import dictionary, users
from tracer.kernel.symbols.dictionary import NO_STACK, Dictionary, Part
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.kallsyms import UNKNOWN, Kallsyms
from tracer.kernel.symbols.kernel import without_tracer
from tracer.kernel.symbols.mappings import Mapping, Mappings
from tracer.kernel.symbols.process import NOWHERE
from tracer.kernel.symbols.processes import Processes
from tracer.kernel.symbols.users import ENDED, LATE, UserStacks

KALLSYMS = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000040 t first
ffffffff81000040 T first_alias
ffffffff81000100 T second
ffffffff81002000 D data_not_text
ffffffffc0000000 t of_module\t[some_module]
ffffffff81000200 W weak
"""


def resolve(symbols: Kallsyms, *addresses: int) -> list[tuple[bytes, bytes]]:
    return symbols.resolve(np.array(addresses, dtype="u8"))


def test_kernel_functions_by_address():
    symbols = Kallsyms(KALLSYMS)
    assert not symbols.hidden
    assert resolve(symbols, 0xFFFFFFFF81000050, 0xFFFFFFFF81000100, 0xFFFFFFFF810002FF, 0xFFFFFFFFC0000010) == [
        (b"[kernel]", b"first_alias"),
        (b"[kernel]", b"second"),
        (b"[kernel]", b"weak"),
        (b"[some_module]", b"of_module"),
    ]


def test_kernel_addresses_of_nothing():
    assert resolve(Kallsyms(KALLSYMS), 0, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFFA0000000) == [UNKNOWN] * 3


def test_code_of_a_module_loaded_later_is_not_the_one_before_it():
    modules = b"some_module 4096 0 - Live 0xffffffffc0000000 (OE)\nother 16384 1 some_module, Live 0xffffffffb0000000\n"
    symbols = Kallsyms(KALLSYMS, modules)
    assert symbols.has_end(b"[some_module]") and not symbols.has_end(b"[bpf]")
    assert resolve(symbols, 0xFFFFFFFFC0000FFF, 0xFFFFFFFFC0001000) == [(b"[some_module]", b"of_module"), UNKNOWN]


def test_packed_they_are_the_same():
    symbols = Kallsyms(KALLSYMS, b"some_module 4096 0 - Live 0xffffffffc0000000\n")
    packed = symbols.packed()
    again = Kallsyms.of_packed(memoryview(packed))
    places = range(0xFFFFFFFF80FFFFFF, 0xFFFFFFFF81002000, 16)
    assert resolve(again, *places) == resolve(symbols, *places)
    assert resolve(again, 0xFFFFFFFFC0000FFF, 0xFFFFFFFFC0001000) == [(b"[some_module]", b"of_module"), UNKNOWN]
    assert again.has_end(b"[some_module]") and not again.has_end(b"[bpf]")
    assert again.packed() == packed and not again.hidden
    assert Kallsyms.of_packed(memoryview(Kallsyms(b"").packed())).hidden


def test_a_modules_initialisation_is_its_own():
    symbols = Kallsyms(KALLSYMS, b"some_module 4096 0 - Coming 0xffffffffb0000000\n")
    assert resolve(symbols, 0xFFFFFFFFC0000010) == [(b"[some_module]", b"of_module")]


@pytest.mark.parametrize("text", [b"", b"0000000000000000 T _text\n0000000000000000 t other\n", b"garbage\n\n"])
def test_hidden_kernel_addresses_are_told(text):
    symbols = Kallsyms(text)
    assert symbols.hidden and resolve(symbols, 0xFFFFFFFF81000050) == [UNKNOWN]


def test_kernel_symbols_are_compact():
    text = b"".join(b"%016x t a_function_with_number_%d\n" % (0xFFFFFFFF81000000 + 64 * i, i) for i in range(100_000))
    symbols = Kallsyms(text)
    assert len(symbols) == 100_000 and symbols.size_bytes < 6_000_000
    assert resolve(symbols, 0xFFFFFFFF81000000 + 64 * 4711 + 3) == [(b"[kernel]", b"a_function_with_number_4711")]


def test_the_tracers_own_frames_are_cut():
    unnamed = (b"[kernel]", b"[unknown]")
    own = [unnamed, (b"[kernel]", b"bpf_trace_run4"), (b"[kernel]", b"__traceiter_sched_switch")]
    rest = [(b"[kernel]", b"__schedule"), (b"[kernel]", b"schedule")]
    assert without_tracer(own + rest) == rest
    assert without_tracer(rest) == rest


MAPS = b"""\
55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234    /usr/bin/some program
55d0c0a02000-55d0c0a25000 r-xp 00002000 fe:01 1234    /usr/bin/some program (deleted)
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0       [vdso]
nonsense
"""


def test_executable_ranges():
    mappings = Mappings.parse(MAPS)
    found = mappings.find(0x55D0C0A02010)
    assert found == Mapping(
        0x55D0C0A02000, 0x55D0C0A25000, 0x2000, (os.makedev(0xFE, 1), 1234), b"/usr/bin/some program (deleted)"
    )
    assert found.module == b"some program"
    assert mappings.find(0x55D0C0A00010) is None and mappings.find(0x55D0C0A25000) is None and mappings.find(1) is None
    assert [mappings.find(address).module for address in (0x7F0000000010, 0x7FFD00000010)] == [
        b"[anonymous]",
        b"[vdso]",
    ]


SLEEPER = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void a_function(void) { pause(); }
int main(void) { printf("%p\\n", (void *)a_function); fflush(stdout); a_function(); return 0; }
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process of a deleted file, and where its function is."""
    source, program = tmp_path / "sleeper.c", tmp_path / "sleeper"
    source.write_text(SLEEPER)
    try:
        subprocess.run(["gcc", f"-Wl,--build-id=0x{'ab' * 20}", "-o", program, source], check=True)
    except FileNotFoundError:
        pytest.skip("no gcc")
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = int(process.stdout.readline(), 16)
        program.unlink()
        yield process, address
        process.kill()


def test_functions_of_a_process_whose_file_is_deleted(process):
    running, address = process
    if os.getuid():
        pytest.skip("not root: deleted files are reached through map_files")
    found = Processes().resolve(running.pid, [address, address + 4, 0x10])
    function = (b"sleeper", b"a_function", b"ab" * 20)
    assert found == {address: function, address + 4: function, 0x10: NOWHERE}


def test_what_has_no_name_has_its_place(process, monkeypatch):
    running, address = process
    monkeypatch.setattr(Files, "resolve", lambda *_: ([b""], b""))
    (symbol,) = Processes().resolve(running.pid, [address]).values()
    lines = Path(f"/proc/{running.pid}/maps").read_text().splitlines()
    line = next(one for one in lines if "sleeper" in one and " r-xp " in one)
    start, offset = (int(text, 16) for text in (line.partition("-")[0], line.split()[2]))
    assert symbol == (b"sleeper", b"[unknown sleeper+%#x]" % (address - start + offset))
    stacks = UserStacks()
    stacks.begin()
    # The CPU was at 0x10; 0x20 and 0x30 are no callers.
    ((part,),) = stacks.parts({(running.pid, 0): [(np.array([0x10, 0x20, 0x30], "u8").tobytes(), b"sleep")]}).values()
    stacks.close()
    assert part.frames == ((b"", b"[unknown 0x10]"), NOWHERE)


_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


@pytest.fixture
def perf_map() -> Iterator[Path]:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    yield path
    path.unlink(missing_ok=True)


def test_what_a_process_made_has_a_name_as_soon_as_it_is_told(perf_map):
    made = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, flags=_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(made))
    processes, untold = Processes(), (b"[anonymous]", b"[anonymous]")
    assert processes.resolve(os.getpid(), [start, start + 64]) == {start: untold, start + 64: untold}
    for name, place in (("_ZN3Jit5firstEv", start), ("py::second:/job.py", start + 64)):
        with perf_map.open("a") as file:
            file.write(f"{place:x} 40 {name}\n")
        found = processes.resolve(os.getpid(), [start, start + 64])
        assert found[start] == (b"[anonymous]", b"Jit::first")
    assert found[start + 64] == (b"[anonymous]", b"py::second:/job.py")


def test_a_program_that_runs_from_memory_has_the_names_in_it(tmp_path):
    if os.getuid():
        pytest.skip("not root: such files are reached through map_files")
    source, program = tmp_path / "sleeper.c", tmp_path / "sleeper"
    source.write_text(SLEEPER)
    subprocess.run(["gcc", "-Wl,--build-id=none", "-o", program, source], check=True)
    memory = os.memfd_create("sealed")
    os.write(memory, program.read_bytes())
    with subprocess.Popen([f"/proc/self/fd/{memory}"], pass_fds=[memory], stdout=subprocess.PIPE, text=True) as process:
        try:
            address = int(process.stdout.readline(), 16)
            assert Processes().resolve(process.pid, [address]) == {address: (b"memfd:sealed", b"a_function")}
        finally:
            process.kill()
            os.close(memory)


def test_functions_of_the_vdso():
    (line,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if "[vdso]" in line]
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    found = Processes().resolve(os.getpid(), range(start + 0x600, end, 16))
    assert found and any(symbol[0] == b"[vdso]" and b"gettime" in symbol[1] for symbol in found.values())


def test_a_process_that_ended_is_told_and_one_that_was_known_is_remembered(process):
    running, address = process
    if os.getuid():
        pytest.skip("not root: deleted files are reached through map_files")
    processes = Processes()
    known = processes.resolve(running.pid, [address])
    running.kill()
    running.wait()
    assert processes.resolve(running.pid, [address]) == known
    assert Processes().resolve(running.pid, [address]) is None


def test_a_stuck_process_does_not_hold_the_others_up_for_long(monkeypatch):
    monkeypatch.setattr(users, "_PATIENCE_SECONDS", 0.05)
    stacks = UserStacks()
    monkeypatch.setattr(stacks._processes, "resolve", lambda *_: time.sleep(0.5))
    stacks.begin()
    began = time.monotonic()
    assert [*stacks.parts({(pid, 0): [(bytes(8), b"any")] for pid in range(1, 100)}).values()] == [[LATE]] * 99
    assert time.monotonic() - began < 0.4
    stacks.close()


def test_a_process_of_the_past_is_one_frame():
    stacks = UserStacks()
    stacks.begin()
    assert stacks.parts({(1 << 30, 0): [(bytes(8), b"any"), (bytes(16), b"any")]}) == {(1 << 30, 0): [ENDED, ENDED]}
    stacks.close()


def test_stacks_and_frames_are_told_once_under_lasting_ids():
    known = Dictionary()
    kernel, user = Part(b"k", [(b"[kernel]", b"read")]), Part(b"u", [(b"libc.so", b"read", b"0123"), (b"a", b"main")])
    number = known.stack(kernel, user)
    stacks, frames = known.take()
    assert stacks["stack"].tolist() == [number] * 3 and stacks["depth"].tolist() == [0, 1, 2]
    assert frames["frame"].tolist() == stacks["frame"].tolist()
    assert [row.tolist()[1:] for row in frames] == [
        (b"k", b"[kernel]", b"read", b""),
        (b"u", b"libc.so", b"read", b"0123"),
        (b"u", b"a", b"main", b""),
    ]
    assert known.stack(kernel, user) == number != known.stack(Part(b"k", ()), user)
    stacks, frames = known.take()
    assert len(stacks) == 2 and len(frames) == 0
    assert Dictionary().stack(kernel, user) == number
    assert known.stack(Part(b"k", ()), Part(b"u", ())) == NO_STACK


def test_a_full_dictionary_begins_anew_with_the_same_ids(monkeypatch):
    monkeypatch.setattr(dictionary, "MAX_STACKS", 3)
    known = Dictionary()
    parts = [Part(b"u", [(b"a", b"f%d" % number)]) for number in range(4)]
    first = [known.stack(Part(b"k", ()), part) for part in parts]
    known.take()
    assert [known.stack(Part(b"k", ()), part) for part in parts] == first
    stacks, frames = known.take()
    assert len(stacks) == len(frames) == 4
