"""Read the structs and constants that both sides share from the C headers in ``bpf/``, the only copy.

The subset: ``u8``…``s64``, ``char[N]``, arrays, nested structs, ``#define NAME integer`` and ``enum``.
C's own alignment rules apply (``align=True``); the loader compares the result with what it compiled.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["bpf_folder", "constants", "layout", "layouts"]

_SCALARS = {
    f"{sign}{bits}": f"{kind}{bits // 8}" for sign, kind in (("u", "u"), ("s", "i")) for bits in (8, 16, 32, 64)
}
_DEFINE = re.compile(r"^#define\s+([A-Z]\w*)\s+\(?(-?\w[\w \t*+<>-]*?)\)?[ \t]*$", re.M)
_INCLUDE = re.compile(r'^#include\s+"(\w+)\.h"', re.M)
_ENUM = re.compile(r"\benum\s*\w*\s*\{(.*?)\}", re.S)
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{(.*?)\n\}\s*;", re.S)
_MEMBER = re.compile(r"^(?:struct\s+)?(\w+)\s+(\w+)((?:\s*\[\s*[^\]]+\])*)$")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def bpf_folder() -> Path:
    """Return the folder with the C sources: inside the installed package, else in the checkout."""
    installed = Path(__file__).parent / "_bpf"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "bpf"


@cache
def constants(header: str) -> dict[str, int]:
    """Return the integer ``#define`` and ``enum`` constants of ``bpf/<header>.h`` and the headers it includes."""
    return _parse(header)[0]


@cache
def layouts(header: str) -> dict[str, np.dtype]:
    """Return the structs of ``bpf/<header>.h`` and the headers it includes, as numpy dtypes by name."""
    return _parse(header)[1]


def layout(header: str, struct: str) -> np.dtype:
    """Return one struct of ``bpf/<header>.h`` as a numpy dtype. Raises KeyError when there is none."""
    return layouts(header)[struct]


@cache
def _parse(header: str) -> tuple[dict[str, int], dict[str, np.dtype]]:
    source = (bpf_folder() / f"{header}.h").read_text()
    text = _COMMENT.sub(" ", source)
    numbers: dict[str, int] = {}
    structs: dict[str, np.dtype] = {}
    for included in _INCLUDE.findall(text):
        more_numbers, more_structs = _parse(included)
        numbers.update(more_numbers)
        structs.update(more_structs)
    for name, expression in _DEFINE.findall(text):
        value = _integer(expression, numbers)
        if value is not None:
            numbers[name] = value
    for body in _ENUM.findall(text):
        _add_enum(body, numbers)
    for name, body in _STRUCT.findall(text):
        structs[name] = _struct(name, body, numbers, structs)
    return numbers, structs


def _integer(expression: str, known: dict[str, int]) -> int | None:
    """Evaluate integers, known names, and ``+ - * << >>`` between them; None for anything else."""
    total: int | None = None
    operator = "+"
    for token in re.findall(r"-?\d\w*|[A-Za-z_]\w*|<<|>>|[-+*]", expression):
        if token in ("+", "-", "*", "<<", ">>"):
            operator = token
            continue
        try:
            value = int(re.sub(r"[uUlL]+$", "", token), 0)
        except ValueError:
            if token not in known:
                return None
            value = known[token]
        total = value if total is None else _apply(operator, total, value)
    return total


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left << right if operator == "<<" else left >> right


def _add_enum(body: str, numbers: dict[str, int]) -> None:
    following = 0
    for item in filter(None, (part.strip() for part in body.split(","))):
        name, _, expression = (part.strip() for part in item.partition("="))
        value = _integer(expression, numbers) if expression else following
        if value is None:
            raise ValueError(f"enum constant {name}: can't read {expression!r}")
        numbers[name] = value
        following = value + 1


def _struct(name: str, body: str, numbers: dict[str, int], structs: dict[str, np.dtype]) -> np.dtype:
    fields: list[tuple[str, object] | tuple[str, object, tuple[int, ...]]] = []
    for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        match = _MEMBER.match(declaration)
        if match is None:
            raise ValueError(f"struct {name}: can't read {declaration!r}")
        kind, member, brackets = match.groups()
        shape = [_integer(size, numbers) for size in re.findall(r"\[\s*([^\]]+?)\s*\]", brackets)]
        if None in shape:
            raise ValueError(f"struct {name}: can't read the size of {member}")
        sizes = tuple(int(size) for size in shape if size is not None)
        if kind == "char":
            fields.append((member, f"S{sizes[-1] if sizes else 1}", sizes[:-1]))
        else:
            fields.append((member, _SCALARS.get(kind) or structs[kind], sizes))
    return np.dtype(fields, align=True)
