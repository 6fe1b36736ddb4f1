"""The reader of C headers against a C compiler: sizes, offsets and constants, of random structs and of our own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer import layouts

HEADERS = sorted(path.stem for path in layouts.bpf_folder().glob("*.h") if not path.name.endswith(".bpf.h"))

PRELUDE = """
#include <stddef.h>
#include <stdio.h>
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char s8; typedef short s16; typedef int s32; typedef long long s64;
"""


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes text a header and returns its (constants, layouts)."""
    layouts._parse.cache_clear()
    monkeypatch.setattr(layouts, "bpf_folder", lambda: tmp_path)

    def read(text: str, name: str = "some") -> tuple[dict[str, int], dict[str, np.dtype]]:
        (tmp_path / f"{name}.h").write_text(text)
        layouts._parse.cache_clear()
        return layouts._parse(name)

    yield read
    layouts._parse.cache_clear()


def compiled(folder: Path, header: str, structs: dict[str, np.dtype], numbers: dict[str, int]) -> dict[str, int]:
    """Have a C compiler tell every size, offset and constant: ``{"struct.member": offset, "struct": size, …}``."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc (Debian: gcc)")
    lines = [f'printf("{name} %lld\\n", (long long)({name}));' for name in numbers]
    for struct, dtype in structs.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        for member in dtype.names or ():
            lines.append(f'printf("{struct}.{member} %zu\\n", offsetof(struct {struct}, {member}));')
    source = folder / "layout.c"
    source.write_text(PRELUDE + f'#include "{header}"\nint main(void) {{ {" ".join(lines)} return 0; }}')
    subprocess.run(["gcc", "-w", f"-I{layouts.bpf_folder()}", "-o", folder / "layout", source], check=True)
    output = subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in output.splitlines())}


def as_read(structs: dict[str, np.dtype], numbers: dict[str, int]) -> dict[str, int]:
    found = dict(numbers)
    for struct, dtype in structs.items():
        found[struct] = dtype.itemsize
        found.update({f"{struct}.{name}": entry[1] for name, entry in (dtype.fields or {}).items()})
    return found


@pytest.mark.parametrize("name", HEADERS)
def test_our_headers_are_read_as_a_compiler_does(name: str, tmp_path: Path):
    numbers, structs = layouts.constants(name), layouts.layouts(name)
    assert as_read(structs, numbers) == compiled(tmp_path, f"{name}.h", structs, numbers)


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).map(lambda name: f"m_{name}")
scalars = st.sampled_from(["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "char"])
lengths = st.one_of(st.just(""), st.integers(1, 7).map("[{}]".format), st.just("[LENGTH]"), st.just("[2][LENGTH * 2]"))
comments = st.sampled_from(["", " /* a; comment { */", " // one = more;"])


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A header with structs that hold scalars, arrays and earlier structs."""
    parts = ["#define LENGTH 3\n"]
    for number in range(draw(st.integers(1, 4))):
        kinds = scalars if not number else st.one_of(scalars, st.integers(0, number - 1).map("struct s{}".format))
        members = draw(st.dictionaries(names, st.tuples(kinds, lengths, comments), min_size=1, max_size=8))
        body = "".join(f"\t{kind} {name}{size};{note}\n" for name, (kind, size, note) in members.items())
        parts.append(f"struct s{number} {{\n{body}}};\n")
    return "\n".join(parts)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=sources())
def test_any_struct_of_the_subset_is_laid_out_as_in_c(text: str, header, tmp_path: Path):
    numbers, structs = header(text)
    assert as_read(structs, numbers) == compiled(tmp_path, "some.h", structs, numbers)


def test_constants_are_integers_names_and_sums(header):
    numbers, _ = header(
        "#define A 0x10\n#define B (A + 2)\n#define C -3\n#define D (1ULL << 4)\n#define E 3U\n"
        '#define TEXT "no number"\n#define CALL(x) (x)\n#define F A\nenum kind { FIRST, SECOND = 7, THIRD };\n'
    )
    assert numbers == {"A": 16, "B": 18, "C": -3, "D": 16, "E": 3, "F": 16, "FIRST": 0, "SECOND": 7, "THIRD": 8}


def test_included_headers_count(header):
    header("#define LENGTH 2\nstruct inner {\n\tu32 a;\n};\n", "below")
    numbers, structs = header('#include "below.h"\nstruct outer {\n\tstruct inner inner[LENGTH];\n};\n')
    assert numbers["LENGTH"] == 2
    assert structs["outer"].itemsize == 8


@pytest.mark.parametrize(
    "body", ["unsigned a;", "u32 *pointer;", "u32 bits : 3;", "u32 a[UNKNOWN];", "struct unknown a;", "u32 a, b;"]
)
def test_what_is_not_in_the_subset_is_refused(body: str, header):
    with pytest.raises((ValueError, KeyError)):
        header(f"struct s {{\n\t{body}\n}};\n")
