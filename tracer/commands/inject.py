"""Make a harmless fault on this node, to see that foreshock finds it and that the pager rings."""

from __future__ import annotations

import click

from tracer.commands._options import DURATION, refuse
from tracer.errors import UsageError

GROUP = "Verify"
ORDER = 5


@click.command()
@click.argument("fault", required=False)
@click.option("--for", "duration", type=DURATION, help="How long; default: long enough to be seen.")
@click.option("--yes", is_flag=True, help="Really do it.")
@click.pass_context
def inject(ctx: click.Context, fault: str | None, duration: int | None, yes: bool) -> None:
    """Make a harmless fault on this node, to see that foreshock finds it and that the pager rings.

    Without a fault it lists them. Each is bounded in time and cleans up after itself, also when it is killed. Work on
    the CPU that is used gets slower meanwhile: so nothing happens without --yes.

    \b
    foreshock inject                              the faults, and what is seen of each
    foreshock inject fs-error --yes               a page: does the pager ring?
    foreshock inject fifo-hog --for 10s --yes     a task that takes one CPU
    """
    from tracer.commands._faults import FAULTS
    from tracer.reports.layout import wrap

    if fault is None:
        refuse(ctx, "without a fault", "duration", "yes")
        for one in FAULTS.values():
            for line in wrap(f"{one.does}.", 100, f"{one.name:<16}", " " * 16):
                click.echo(line)
            for line in wrap(f"{one.usual_s} s, at most {one.longest_s} s; seen: {one.seen}", 100, " " * 16, " " * 18):
                click.echo(line)
        return
    if fault not in FAULTS:
        raise UsageError(f"no fault is called {fault!r}.", hint=_nearest(fault, list(FAULTS)))
    chosen = FAULTS[fault]
    seconds = chosen.usual_s if duration is None else duration / 1e9
    if seconds > chosen.longest_s:
        raise UsageError(f"{fault} lasts {chosen.longest_s} s at most.", hint=f"--for {chosen.longest_s}s")
    if not yes:
        raise UsageError(
            f"{fault} would do this for {seconds:g} s: {chosen.does}.", hint="add --yes to have it done on this node"
        )
    _make(fault, seconds)


def _make(fault: str, seconds: float) -> None:
    from tracer.commands._faults import FAULTS
    from tracer.commands._stopping import stopping
    from tracer.workloads import places

    chosen, where = FAULTS[fault], places()
    with stopping() as stop, chosen.start(seconds, where) as work:
        click.echo(f"{fault}: {chosen.does}; for {seconds:g} s, pid {work.pid}, CPU {where.busy} where it is one CPU's")
        click.echo(f"seen: {chosen.seen}")
        work.go()
        if stop.wait(seconds):
            click.echo("ended early, cleaned up")
            return
        done = work.result()
    click.echo("done: " + ", ".join(f"{name} {value}" for name, value in done.items() if not isinstance(value, list)))


def _nearest(fault: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(fault, names, 1)
    return f"did you mean {near[0]}?" if near else f"one of {', '.join(names)}"
