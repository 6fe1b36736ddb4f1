"""docs/kernels.md from what guests told: each probe on each kernel. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

__all__ = ["page"]

_WIDTH = 120
_HEAD = """\
# Kernels

<!-- Written by `make kernels` from what it measured: edit tests/vm/matrix_page.py, not this page. -->

What foreshock does on kernels of Debian's releases. `make kernels` boots each in an emulated machine (QEMU, TCG, two
CPUs, cgroup v2) with this machine's files and bcc, and runs `foreshock doctor`, `foreshock record --deep --for 8s`
beside a workload, and `foreshock selftest`; `make kernels KERNELS="5.10 6.1"` does some of them. Each column is the
latest run. The machine is some ten times slower than a real one, more so where others use its CPUs: selftest's
tolerances and time limits are for real ones, so what is not right here may be the machine's slowness.

- **right**: attached, and selftest's known answers hold.
- **runs**: attached and recorded; selftest can't judge it on this machine, or did not run.
- **not right**: attached, and an answer was not the known one; what it was is below.
- **no**: does not attach, and why.
- **not known**: the run did not come so far.
"""


def page(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of the runs, by their kernels' names."""
    heads = [f"{name} ({run.get('kernel', 'did not boot')})" for name, run in runs.items()]
    probes = sorted({name for run in runs.values() for name in _probes(run)})
    lines = [_HEAD, _row(["probe", *heads]), _row(["---"] * (1 + len(heads)))]
    lines += [_row([name, *(_state(name, run) for run in runs.values())]) for name in probes]
    for name, run in runs.items():
        lines += ["", f"## Linux {name}", "", *_about(run)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _checks(run: Mapping[str, Any]) -> list[Mapping[str, str]]:
    return list(run.get("selftest", {}).get("answer", {}).get("checks", ()))


def _recorded(run: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(run.get("recorded", {"probes": [], "refused": {}, "missing": []}))


def _probes(run: Mapping[str, Any]) -> set[str]:
    recorded = _recorded(run)
    return {*recorded["probes"], *recorded["refused"], *(check["probe"] for check in _checks(run))}


def _state(probe: str, run: Mapping[str, Any]) -> str:
    said = {check["status"] for check in _checks(run) if check["probe"] == probe}
    if probe in _recorded(run)["refused"]:
        return "no"
    if "FAIL" in said:
        return "not right"
    if "PASS" in said:
        return "right"
    return "runs" if probe in _recorded(run)["probes"] else "not known"


def _about(run: Mapping[str, Any]) -> Iterator[str]:
    recorded, selftest = _recorded(run), run.get("selftest")
    for verb in ("doctor", "record", "selftest"):
        if verb not in run:
            yield f"- `foreshock {verb}`: the run did not come to its end"
        elif run[verb]["code"]:
            yield _item(f"`foreshock {verb}`: exit code {run[verb]['code']}. {run[verb]['words']}")
        else:
            yield f"- `foreshock {verb}`: well"
    for check in run.get("doctor", {}).get("answer", {}).get("checks", ()):
        if check["status"] != "ok":
            yield _item(f"doctor, {check['name']}: {check['found']}")
    for probe, reason in recorded["refused"].items():
        yield _item(f"{probe} does not attach: {reason}")
    for probe, reason in recorded["missing"]:
        yield _item(f"{probe} does without: {reason}")
    for check in _checks(run) if selftest else ():
        if check["status"] != "PASS":
            expected = f"; expected {check['expected']}" if check["expected"] else ""
            yield _item(f"{check['probe']}, {check['status']}: {check['measured']}{expected}")
    if run.get("lacks"):
        yield _item(f"members and tracepoints that it has not: {', '.join(run['lacks'])}")
    for difference in run.get("differs", ()):
        yield _item(f"differs: {difference}")
    yield f"- measured {run.get('measured', '')}"


def _item(text: str) -> str:
    # Angle brackets would be HTML.
    plain = " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|")
    return fill(plain, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
