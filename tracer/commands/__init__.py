"""The command line: one file per verb, found by walking this folder.

A module is a verb when it says ``GROUP = "Investigate"`` (one of ``GROUPS``, optionally ``ORDER = 2``) and holds a
click command of its own name. Both constants and the docstring are read from its source, so that neither
``foreshock --help`` nor a verb imports the other verbs: ``foreshock summary`` never loads the kernel side.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import tracer
from tracer.commands._failures import failures
from tracer.commands._streams import hold_streams

__all__ = ["GROUPS", "Verb", "main", "verbs"]

GROUPS = ("Investigate", "Run always", "Verify")


@dataclass(frozen=True)
class Verb:
    """A verb as its module's source declares it. ``summary`` is the docstring's first line."""

    name: str
    group: str
    order: int
    summary: str


def verbs() -> dict[str, Verb]:
    """Return the verbs by name, in the order in which help shows them."""
    found = [verb for path in Path(__file__).parent.glob("[a-z]*.py") if (verb := _declared(path)) is not None]
    found.sort(key=lambda verb: (GROUPS.index(verb.group), verb.order, verb.name))
    return {verb.name: verb for verb in found}


def _declared(path: Path) -> Verb | None:
    module = ast.parse(path.read_bytes())
    constants = {
        node.targets[0].id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    if "GROUP" not in constants:
        return None
    if constants["GROUP"] not in GROUPS:
        raise ValueError(f"{path.name}: GROUP must be one of {', '.join(GROUPS)}")
    summary = (ast.get_docstring(module) or "").partition("\n")[0].rstrip(".")
    order = constants.get("ORDER")
    return Verb(path.stem, str(constants["GROUP"]), order if isinstance(order, int) else 99, summary)


class _Main(click.Group):
    """The group whose commands are modules, and where every failure turns into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # One file is read, not all: cmd_name comes from the command line and must not lead out of the folder.
        path = Path(__file__).with_name(f"{cmd_name}.py") if cmd_name.isidentifier() else None
        if path is None or not path.is_file() or _declared(path) is None:
            return None
        command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"tracer/commands/{cmd_name}.py: '{cmd_name}' is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            question = f"; did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"unknown command '{name}'{question}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = verbs()
        for group in GROUPS:
            rows = [(verb.name, verb.summary) for verb in found.values() if verb.group == group]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_spacing=4)

    def invoke(self, ctx: click.Context) -> Any:
        # Inside click's own handling, which would end a broken pipe with exit code 1.
        with failures():
            return super().invoke(ctx)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "foreshock",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        hold_streams()
        with failures():
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        # What a verb gives to ctx.exit(), or returns, if it is a number.
        sys.exit(code if type(code) is int else 0)


@click.group(
    cls=_Main,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="Exit codes: 0 done; 1 an error, or an answer that is one; 2 the command line; 3 this node can't; 4 a "
    "recording can't be read; 5 a result can't be written; 6 a limit is passed; 7 too little was recorded to tell; "
    "70 a bug.",
)
@click.version_option(tracer.__version__, prog_name="foreshock")
def main() -> None:
    """Trace what this node does to its jobs: scheduling, interrupts, networking, stalls."""
