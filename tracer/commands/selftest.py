"""Check every probe on this node against workloads with known answers and the kernel's own counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracer.selftest import Check

GROUP = "Verify"
ORDER = 3

_WIDTH = 80


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: ok, checks.")
@click.pass_context
def selftest(ctx: click.Context, as_json: bool) -> None:
    """Check every probe on this node against workloads with known answers and the kernel's own counters.

    Takes about 10 seconds and needs root. A task of its own takes one CPU for 0.2 seconds at a time, for one
    second. PASS: measured as expected; FAIL: not; SKIP: can't be checked here, and why.
    Exits with 0 when nothing failed, with 1 when something did, with 3 when no probe could run in the kernel.
    """
    # Not at the top: `foreshock selftest --help` needs nothing of the kernel side.
    from tracer.commands._progress import Progress
    from tracer.selftest._run import run

    progress = Progress(enabled=True)
    results = run(lambda text: progress.say(f"selftest: {text}"))
    progress.end()
    click.echo(_as_json(results) if as_json else _as_text(results))
    ctx.exit(_exit_code(results))


def _exit_code(results: list[tuple[str, Check]]) -> int:
    from tracer.probes import all_probes

    if any(check.status == "FAIL" for _, check in results):
        return 1
    hooked = {name for name, probe in all_probes().items() if probe.hooks}
    return 0 if any(check.status == "PASS" and name in hooked for name, check in results) else 3


def _as_json(results: list[tuple[str, Check]]) -> str:
    import json
    from dataclasses import asdict

    checks = [{"probe": name, **asdict(check)} for name, check in results]
    return json.dumps({"ok": _exit_code(results) == 0, "checks": checks}, indent=2)


def _as_text(results: list[tuple[str, Check]]) -> str:
    from tracer.reports.layout import wrap

    label = max(len(name) for name, _ in results) + 2
    lines = []
    for name, check in results:
        text = f"{check.measured}; expected {check.expected}" if check.expected else check.measured
        lines += wrap(text, _WIDTH, f"{check.status}  {name:<{label}}", " " * (6 + label))
    totals = {status: sum(check.status == status for _, check in results) for status in ("PASS", "FAIL", "SKIP")}
    return "\n".join([*lines, "", f"{totals['PASS']} passed, {totals['FAIL']} failed, {totals['SKIP']} skipped."])
