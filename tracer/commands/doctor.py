"""Check whether foreshock can run on this node, and what to do if not.

Changes nothing: small BPF maps and programs are made and removed again to see what the kernel allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracer.kernel.checks import Check

GROUP = "Verify"
ORDER = 1

_WIDTH = 80


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: ok, checks.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check whether foreshock can run on this node, and what to do if not.

    Changes nothing: small BPF maps and programs are made and removed again to see what the kernel allows.
    Exits with 0 when light probes can run, with 3 when not.
    """
    # Not at the top: `foreshock doctor --help` needs nothing of the kernel side.
    from dataclasses import replace

    from tracer.commands._failures import own_command
    from tracer.kernel.capability import read_facts
    from tracer.kernel.checks import BE_ROOT, can_run, judge
    from tracer.kernel.parts import tracepoints_check
    from tracer.probes import all_probes

    checks = [*judge(read_facts()), *tracepoints_check(all_probes().values())]
    checks = [replace(one, fix=f"{BE_ROOT}: sudo {own_command()}") if one.fix == BE_ROOT else one for one in checks]
    click.echo(_as_json(checks, can_run(checks)) if as_json else _as_text(checks, can_run(checks)))
    if not can_run(checks):
        ctx.exit(3)


def _as_json(checks: list[Check], ok: bool) -> str:
    import json
    from dataclasses import asdict

    return json.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}, indent=2)


def _as_text(checks: list[Check], ok: bool) -> str:
    lines = []
    for check in checks:
        lines += _wrapped(f"{check.status:<6}{check.name:<16}", check.found)
        if check.fix and check.status != "ok":
            # Further to the left, so that a command fits its line and can be copied.
            lines += _wrapped(f"{'':<6}fix: ", check.fix, whole_words=True)
    warnings = sum(check.status == "warn" for check in checks)
    failures = sum(check.status == "fail" for check in checks)
    counts = f"{_count(failures, 'failure')}, {_count(warnings, 'warning')}"
    return "\n".join([*lines, "", f"foreshock {'can' if ok else 'cannot'} run here: {counts}."])


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _wrapped(label: str, text: str, *, whole_words: bool = False) -> list[str]:
    """Return ``text`` in lines of at most 80 columns behind ``label``; commands keep their words and hyphens whole."""
    import textwrap

    from tracer.escape import printable

    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_on_hyphens=False,
        break_long_words=not whole_words,
    ) or [label.rstrip()]
