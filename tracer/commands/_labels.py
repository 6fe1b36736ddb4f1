"""Labels that a user gives a recording: ``--label rack=r12``."""

from __future__ import annotations

import re

import click

__all__ = ["labelled"]

_NAME = re.compile(r"[A-Za-z_][\w.-]{0,62}", re.ASCII)
_MOST, _LONGEST = 32, 200


def labelled(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read ``NAME=VALUE``, repeated; raises click.BadParameter."""
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise click.BadParameter(f"{text!r}: say NAME=VALUE, for example rack=r12", ctx, param)
        if not value.strip() or len(value) > _LONGEST:
            raise click.BadParameter(f"{name}: a value has 1 to {_LONGEST} characters", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", ctx, param)
        found[name] = value.strip()
    if len(found) > _MOST:
        raise click.BadParameter(f"{len(found)} labels: {_MOST} at most", ctx, param)
    return found
