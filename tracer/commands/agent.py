"""Watch this node all the time and tell what is about to go wrong, before the kernel does.

Sentinels, small processes on different CPUs, tell on their own what can't wait: see docs/architecture.md, "Alerts".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracer.commands._early import start_early
from tracer.commands._options import DURATION, INTERVAL, SIZE, refuse
from tracer.commands._stopping import stopping, waking

if TYPE_CHECKING:
    from tracer.closeup.terms import Terms

GROUP = "Run always"
ORDER = 1

_STATE = "/var/lib/foreshock/alerts.state"
_CLOSEUPS = "/var/lib/foreshock/closeups"


@click.command()
@click.option("--foreground", is_flag=True, help="Show what is watched, alerts as they come, and a sign of life.")
@click.option("--interval", type=INTERVAL, default="1s", show_default=True, help="How often all rules are asked.")
@click.option("--probes", default="auto", show_default=True, metavar="A,B",
              help="Probes by name, or auto: every light one that can run here.")  # fmt: skip
@click.option("--sink", "sinks", multiple=True, metavar="SPEC",
              help="Where alerts go, again for each: terminal, json:PATH, journald, webhook:URL, alertmanager:URL; "
              "kmsg and pmsg write to the kernel's own logs. Default: the journal, else JSON lines.")  # fmt: skip
@click.option("--shadow", multiple=True, metavar="RULE",
              help="A rule on trial, again for each: its alerts are only logged.")  # fmt: skip
@click.option("--blackbox", multiple=True, metavar="PATH",
              help="Record the last minutes into this file; again for a copy on another disk.")  # fmt: skip
@click.option("--blackbox-size", type=SIZE, default="64MiB", show_default=True, metavar="SIZE",
              help="Of each of these files, 64KiB to 1GiB.")  # fmt: skip
@click.option("--stream", default="", metavar="HOST:PORT", help="Send alerts and windows to 'foreshock fleet serve'.")
@click.option("--token-file", default="", metavar="FILE", help="Holds the stream's token.")
@click.option("--closeup", type=click.Choice(["off", "page", "warning"]), default="off", show_default=True,
              help="Alerts of that severity, or above it, have the deep probes run for some seconds; what they saw is "
              "told with the alert.")  # fmt: skip
@click.option("--closeup-for", type=DURATION, default="10s", show_default=True, help="How long they run, 2 to 60 s.")
@click.option("--closeup-pause", type=DURATION, default="10m", show_default=True, help="From one to the next at least.")
@click.option("--closeup-most", type=int, default=12, show_default=True, metavar="N",
              help="How many a day, 288 at most.")  # fmt: skip
@click.option("--closeup-folder", default=_CLOSEUPS, show_default=True, metavar="DIR",
              help="Where their recordings and reports go, the last 20.")  # fmt: skip
@click.option("--state", metavar="FILE", help=f"Which alerts fire, for after a restart. As root: {_STATE}.")
@click.pass_context
def agent(
    ctx: click.Context,
    foreground: bool,
    interval: int,
    probes: str,
    sinks: tuple[str, ...],
    shadow: tuple[str, ...],
    blackbox: tuple[str, ...],
    blackbox_size: int,
    stream: str,
    token_file: str,
    closeup: str,
    closeup_for: int,
    closeup_pause: int,
    closeup_most: int,
    closeup_folder: str,
    state: str | None,
) -> None:
    """Watch this node all the time and tell what is about to go wrong, before the kernel does.

    \b
    foreshock agent --foreground                             watch it at work
    foreshock agent --sink journald --sink webhook:https://hooks.example/x
    foreshock agent --stream collector:9750 --token-file /etc/foreshock/token
    foreshock agent --closeup page                           a report of the bad seconds with each page

    Ctrl-C or SIGTERM ends it. deploy/foreshock-agent.service is a unit for systemd.
    """
    with stopping() as stop, waking() as wakes:
        start_early()
        # numpy's algebra, which nothing here uses, would start a thread per CPU, and be forked with them.
        for library in ("OPENBLAS", "OMP", "MKL"):
            os.environ.setdefault(f"{library}_NUM_THREADS", "1")
        # Not at the top: `foreshock agent --help` needs neither numpy nor the kernel side.
        from tracer.agent.agent import Agent
        from tracer.agent.orders import Orders
        from tracer.agent.screen import Screen
        from tracer.agent.service import Service
        from tracer.alerts.rules import rules

        terms = _terms(ctx, closeup, closeup_for, closeup_pause, closeup_most, closeup_folder)
        kept = state or (_STATE if os.geteuid() == 0 else None)
        orders = Orders(
            interval, probes, sinks, shadow, blackbox, blackbox_size, stream, token_file,
            Path(kept) if kept else None, foreground, terms,
        )  # fmt: skip
        screen, service = Screen(foreground), Service()
        with Agent(orders, rules(), screen.note) as watching:
            service.say(READY="1", STATUS=f"{len(watching.rules)} rules, {len(watching.crew.posts)} sentinels")
            watching.run(
                stop, wakes, lambda view: screen.interval(watching, view), lambda: service.say(WATCHDOG="1")
            )  # fmt: skip
            service.say(STOPPING="1")
        service.close()


def _terms(ctx: click.Context, severity: str, for_ns: int, pause_ns: int, most: int, folder: str) -> Terms | None:
    """Return the terms of close-ups; None for none. Raises UsageError where one was given and there are none."""
    if severity == "off":
        refuse(ctx, "without --closeup", "closeup_for", "closeup_pause", "closeup_most", "closeup_folder")
        return None
    from tracer.alerts.alert import Severity
    from tracer.closeup.terms import Terms

    return Terms(Severity[severity.upper()], for_ns, pause_ns, most, os.path.abspath(folder))
