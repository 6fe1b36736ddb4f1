"""Where functions' names come from: ELF files made by gcc, debug files cut off them, perf maps, mangled names.

Their authors are the watched programs: damaged and hostile ones cost nothing but their own names.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from tracer.kernel.symbols import elf, files, headers, jit
from tracer.kernel.symbols.demangle import demangled
from tracer.kernel.symbols.elf import DYNSYM, SymbolTable, read_symbols
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.headers import NO_HEADERS, read_headers
from tracer.kernel.symbols.jit import JitMap
from tracer.kernel.symbols.mappings import Mapping
from tracer.kernel.symbols.opening import open_regular

C = """
__attribute__((noinline, weak)) int outer_function(int x) { return x * 3; }
static __attribute__((noinline, used)) int inner_function(int x) { return x * 5; }
int main(int argc, char **argv) { (void)argv; return outer_function(argc) + inner_function(argc); }
"""
BUILD_ID = "00" + "c5" * 19


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    source, program = folder / "program.c", folder / "program"
    source.write_text(C)
    subprocess.run(["gcc", "-O1", f"-Wl,--build-id=0x{BUILD_ID}", "-o", program, source], check=True)
    return program


def addresses_of(program: Path) -> dict[str, tuple[int, int]]:
    """Return address and size of each function, from pyelftools' own reader of symbols."""
    with program.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        functions = [symbol for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]]
        return {symbol.name: (symbol["st_value"], symbol["st_size"]) for symbol in functions}


def symbols_of(path: Path, *addresses: int) -> tuple[SymbolTable, list[bytes]]:
    with path.open("rb") as file:
        table = read_symbols(file.fileno(), read_headers(file.fileno()))
        return table, table.resolve(list(addresses), file.fileno())


def test_functions_of_a_file(program):
    for name in ("main", "outer_function", "inner_function"):
        start, size = addresses_of(program)[name]
        _, found = symbols_of(program, start, start + size - 1, start + size)
        assert found[:2] == [name.encode()] * 2 and found[2] != name.encode()


def test_headers_are_those_that_another_reader_sees(program):
    with program.open("rb") as file:
        found, expected = read_headers(file.fileno()), ELFFile(file)
        assert (
            found.build_id.decode()
            == BUILD_ID
            == next(expected.get_section_by_name(".note.gnu.build-id").iter_notes())["n_desc"]
        )
        assert len(found.sections) == expected.num_sections()
        loaded = [one.header for one in expected.iter_segments("PT_LOAD")]
        assert [(one.offset, one.address, one.size) for one in found.segments] == [
            (one["p_offset"], one["p_vaddr"], one["p_filesz"]) for one in loaded
        ]


@pytest.mark.parametrize("keep", [0, 3, 16, 63, 64, 100, 2000])
def test_broken_files_have_no_symbols(program, tmp_path, keep):
    (tmp_path / "cut").write_bytes(program.read_bytes()[:keep])
    assert not len(symbols_of(tmp_path / "cut")[0])


def test_damaged_files_raise_nothing(program, tmp_path):
    whole = program.read_bytes()
    damage = np.random.default_rng(1)
    for _ in range(300):
        data = bytearray(whole)
        for place in damage.integers(0, len(data), 4):
            data[place] = int(damage.integers(0, 256))
        for place in damage.integers(4, 64, 2):
            data[place] = int(damage.integers(0, 256))
        (tmp_path / "damaged").write_bytes(data)
        symbols_of(tmp_path / "damaged", 0, 0x1139, (1 << 64) - 1)


def test_symbols_are_bounded(program, monkeypatch):
    monkeypatch.setattr(elf, "MAX_SYMBOLS", 2)
    assert len(symbols_of(program)[0]) <= 2


def test_a_symbol_table_that_goes_on_for_ever_is_not_read_for_ever(program, tmp_path):
    """A hole of 4 TB in a file takes no room on disk: zeros, none of which is a function."""
    data = bytearray(program.read_bytes())
    sections, section = int.from_bytes(data[40:48], "little"), np.dtype((np.void, 64)).itemsize
    for at in range(sections, len(data), section):
        if int.from_bytes(data[at + 4 : at + 8], "little") == elf.SYMTAB:
            data[at + 24 : at + 40] = (1 << 20).to_bytes(8, "little") + (1 << 42).to_bytes(8, "little")
    (tmp_path / "hole").write_bytes(data)
    os.truncate(tmp_path / "hole", 1 << 42)
    began = time.process_time()
    assert not len(symbols_of(tmp_path / "hole")[0])
    assert time.process_time() - began < 5  # 200 MB of zeros; all of it would take hours


def strip_apart(program: Path, folder: Path) -> tuple[Path, Path]:
    """Return a stripped copy, and where its debug file is below ``folder``."""
    stripped, debug = folder / "stripped", folder / BUILD_ID[:2] / f"{BUILD_ID[2:]}.debug"
    debug.parent.mkdir()
    subprocess.run(["strip", "-o", stripped, program], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    return stripped, debug


def resolved(path: Path, known: Files, *names: str) -> tuple[list[bytes], bytes]:
    """Resolve functions as if a process had mapped the whole file at once."""
    wanted = [addresses_of(path.parent / "whole")[name][0] for name in names]
    with path.open("rb") as file:
        about = known._about(file.fileno())
        if about.debug:
            return known._in_debug_file(about, wanted), about.headers.build_id
        return about.table.resolve(wanted, file.fileno()), about.headers.build_id


@pytest.fixture
def apart(program, tmp_path, monkeypatch) -> tuple[Path, Path]:
    (tmp_path / "whole").write_bytes(program.read_bytes())
    monkeypatch.setattr(files, "DEBUG_FILES", tmp_path)
    return strip_apart(program, tmp_path)


def test_a_stripped_files_functions_are_in_its_debug_file(apart):
    stripped, _ = apart
    assert resolved(stripped, Files(), "main", "inner_function") == ([b"main", b"inner_function"], BUILD_ID.encode())


def test_a_debug_file_of_another_build_is_not_its(apart, program):
    stripped, debug = apart
    other = program.parent / "other"
    subprocess.run(
        ["gcc", "-O1", f"-Wl,--build-id=0x{'11' * 20}", "-o", other, program.parent / "program.c"], check=True
    )
    debug.write_bytes(other.read_bytes())
    names, build_id = resolved(stripped, Files(), "main")
    assert names == [b""] and build_id == BUILD_ID.encode(), "nothing but what it exports, and its own id"


def test_a_debug_file_that_is_replaced_meanwhile_has_no_names(apart):
    stripped, debug = apart
    known = Files()
    assert resolved(stripped, known, "main")[0] == [b"main"]
    os.utime(debug, ns=(1, 1))
    assert resolved(stripped, known, "main")[0] == [b""]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "dangling"])
def test_a_debug_file_that_is_no_file_is_none(apart, kind):
    stripped, debug = apart
    debug.unlink()
    make = {
        "pipe": lambda: os.mkfifo(debug),  # must not wait for a writer
        "folder": debug.mkdir,
        "device": lambda: debug.symlink_to("/dev/zero"),
        "dangling": lambda: debug.symlink_to("/none"),
    }
    make[kind]()
    assert resolved(stripped, Files(), "main")[0] == [b""]


def test_a_stripped_file_without_one_keeps_what_it_exports(program, tmp_path):
    library = tmp_path / "library.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-s", "-o", library, program.parent / "program.c"], check=True)
    with library.open("rb") as file:
        found = read_headers(file.fileno())
        assert not len(read_symbols(file.fileno(), found))
        assert len(read_symbols(file.fileno(), found, DYNSYM)) >= 2  # outer_function, main


def test_what_is_no_elf_file_has_no_headers(tmp_path):
    for content in (
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n" * 100,
        b"\x7fELF\x01\x01" + bytes(200),
        b"\x7fELF\x02\x02" + bytes(99),
    ):
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            assert read_headers(file.fileno()) == NO_HEADERS


def test_a_note_that_claims_to_be_huge_is_no_build_id(program, tmp_path):
    data = bytearray(program.read_bytes())
    at = data.index(b"GNU\0" + bytes.fromhex(BUILD_ID)) - 8
    for size in (21, 1 << 20, 0xFFFFFFFF):
        data[at : at + 4] = size.to_bytes(4, "little")
        (tmp_path / "file").write_bytes(data)
        with (tmp_path / "file").open("rb") as file:
            found = read_headers(file.fileno())
        assert found.build_id == b"" and found.sections


def test_devices_and_missing_files_are_not_opened(tmp_path):
    with pytest.raises(OSError, match="/dev/null"):
        open_regular(b"/dev/null")
    with pytest.raises(FileNotFoundError):
        open_regular(os.fsencode(tmp_path / "none"))
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(FileNotFoundError):
        open_regular(os.fsencode(tmp_path / "link"), follow=False)


def test_symbol_tables_are_bounded(program, monkeypatch):
    monkeypatch.setattr(files, "MAX_TABLES", 1)
    known = Files()
    for path in (program, Path("/proc/self/exe"), program):
        with path.open("rb") as file:
            known._about(file.fileno())
            assert len(known._known) == 1


def test_what_a_runtime_shares_with_itself_may_be_a_program_or_what_it_made():
    made = [b"/memfd:doublemapper (deleted)", b"/dev/zero (deleted)"]
    assert all(one.has_file and one.may_be_made for one in (Mapping(0, 4096, 0, (1, 2), path) for path in made))
    assert not Mapping(0, 4096, 0, (1, 2), b"/usr/bin/memfd").may_be_made
    assert Mapping(0, 4096, 0, (0, 0), b"").may_be_made and not Mapping(0, 4096, 0, (0, 0), b"").has_file


@pytest.mark.parametrize(
    "mangled, name",
    [
        (b"main", b"main"),
        (b"_start", b"_start"),
        (b"_Z", b"_Z"),
        (b"_Z3", b"_Z3"),
        (b"_ZN5Queue3popEv", b"Queue::pop"),
        (b"_ZNSt6vectorIiSaIiEE9push_backERKi", b"std::vector<int, std::allocator<int> >::push_back"),
        (b"_ZN3std2io4Read11read_to_end17hb85a0f6802e14499E", b"std::io::Read::read_to_end"),
        (b"_RNvCskwGfYPst2Cb_3foo16example_function", b"foo::example_function"),
        (b"_Z1\xff", b"_Z1\xff"),
    ],
)
def test_names_as_people_write_them(mangled, name):
    assert demangled(mangled) == name


def test_hostile_names_cost_little():
    """Nested as deep as they are long, or each twice the one before: 2^40 characters, if nobody counted."""
    numbers = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    doubled = "_Z1f1AIiiE" + "".join(f"S{n}_IS{m}_S{m}_E" for n, m in zip(["", *numbers], numbers[:40], strict=False))
    deep = [kind * 2000 for kind in ("P", "N", "I1a", "F", "cl", "S_", "1a", "Dp", "X", "T", "NvC1a")]
    random = np.random.default_rng(3)
    noise = ["".join(random.choice([*"SPNIEFRKv1a0_ZLXDTQ"], 400)) for _ in range(2000)]
    began = time.process_time()
    for prefix in ("_Z1f", "_ZN", "_RI", "_R"):
        for rest in (doubled, *deep, *noise):
            demangled(f"{prefix}{rest}".encode())
    assert time.process_time() - began < 10  # measured: 0.2 s


def test_jit_maps():
    found = JitMap(b"1000 10 first\n1010 8 py::name with spaces:/file.py\nbad line\n1000 20 compiled again\nzz 1 x\n")
    assert [found.resolve(address) for address in (0xFFF, 0x100F, 0x1017, 0x1018)] == [
        b"",
        b"compiled again",
        b"py::name with spaces:/file.py",
        b"",
    ]


@pytest.fixture
def perf_map(tmp_path) -> Path:
    folder = tmp_path / "root" / "tmp"
    folder.mkdir(parents=True)
    return folder / "perf-7.map"


def read(path: Path, known: JitMap | None = None, uid: int | None = None) -> JitMap | None:
    return JitMap.of(str(path.parents[2]), 7, os.getuid() if uid is None else uid, known)


def test_jit_maps_are_read_as_they_grow(perf_map):
    assert read(perf_map) is None
    perf_map.write_bytes(b"1000 10 first\n1010 10 seco")
    known = read(perf_map)
    assert known and (known.resolve(0x1000), known.resolve(0x1010)) == (b"first", b"")
    with perf_map.open("ab") as file:
        file.write(b"nd\n1020 10 third\n")
    assert read(perf_map, known) is known
    assert [known.resolve(address) for address in (0x1000, 0x1010, 0x1020)] == [b"first", b"second", b"third"]
    perf_map.write_bytes(b"1000 10 another\n")
    assert read(perf_map, known).resolve(0x1000) == b"another", "begun again"
    perf_map.unlink()
    assert read(perf_map, known) is None


def test_jit_maps_of_others_are_not_read(perf_map):
    perf_map.write_bytes(b"1000 10 first\n")
    assert read(perf_map)
    os.chown(perf_map, 12345, 12345)
    assert read(perf_map) is None and read(perf_map, uid=12345)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_what_is_no_file_is_no_jit_map(perf_map, kind):
    make = {
        "link": lambda: perf_map.symlink_to("/etc/passwd"),
        "pipe": lambda: os.mkfifo(perf_map),  # must not wait for a writer
        "folder": perf_map.mkdir,
        "device": lambda: perf_map.symlink_to("/dev/zero"),
    }
    make[kind]()
    assert read(perf_map) is None


def test_of_a_long_jit_map_the_beginning_counts(perf_map, monkeypatch):
    monkeypatch.setattr(jit, "MAX_BYTES", 20)
    perf_map.write_bytes(b"1000 10 first\n1010 10 second\n")
    known = read(perf_map)
    assert known.resolve(0x1000) == b"first" and known.resolve(0x1010) == b""
    assert read(perf_map, known).resolve(0x1010) == b""


@pytest.mark.parametrize(
    "text",
    [
        b"\0" * 100_000 + b"\n",
        b"\n" * 100_000,
        b"9" * 100_000 + b" 10 huge\n",
        b"-1000 -10 negative\n",
        b"1000 10 " + b"_Z" + b"N" * 100_000 + b"\n",
        b"1000\xff 10 \xff\n",
        b"1000 10\n1000\n \n",
        b"1000 ffffffffffffffffffffffffffff name\n",
    ],
)
def test_hostile_jit_maps_are_lines_like_others(text):
    found = JitMap(text + b"2000 10 \x1b[2J</script>\n")
    assert found.resolve(0x2008) == b"\x1b[2J</script>", "names are escaped where they are shown"
    assert len(found.resolve(0x1000)) <= elf.MAX_NAME


def test_no_more_headers_are_read_than_a_file_may_have(program, tmp_path):
    data = bytearray(program.read_bytes())
    data[60:62] = (headers._SECTIONS + 1).to_bytes(2, "little")
    (tmp_path / "many").write_bytes(data)
    with (tmp_path / "many").open("rb") as file:
        assert read_headers(file.fileno()) == NO_HEADERS
