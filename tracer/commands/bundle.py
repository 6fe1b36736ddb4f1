"""Pack a node's black box as evidence: checksummed, and without names if you like.

The box, what it says as text and JSON, the node's fingerprint and the kernel's settings, in one file to hand on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracer.commands._options import pstore_option, refuse
from tracer.commands._redacting import redaction_options, redactor_of
from tracer.commands._streams import aside
from tracer.errors import UsageError

if TYPE_CHECKING:
    from tracer.blackbox.box import Box
    from tracer.blackbox.redact import Redactor
    from tracer.reports.story import Story

GROUP = "Investigate"
ORDER = 5

_LAST_NS = 60_000_000_000
_SETTINGS_NS = 130_000_000_000  # they are recorded every minute


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@click.option("-o", "--output", metavar="FILE.tar.gz", help="Where to.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@redaction_options
@pstore_option
@click.option("--verify", metavar="FILE.tar.gz", help="Check a bundle against its checksums instead.")
@click.pass_context
def bundle(
    ctx: click.Context,
    path: str | None,
    output: str | None,
    overwrite: bool,
    redact: bool,
    key_file: str | None,
    pstore: tuple[str, ...],
    verify: str | None,
) -> None:
    """Pack a node's black box as evidence: checksummed, and without names if you like.

    PATH is a black box; by default the one that 'foreshock postmortem' reads. 'sha256sum -c SHA256SUMS' checks an
    unpacked bundle without foreshock.

    \b
    foreshock bundle -o cu39.tar.gz --redact     the box of the previous boot, without names
    foreshock bundle --verify cu39.tar.gz        exits with 4 when anything differs
    """
    if verify is not None:
        refuse(ctx, "with --verify", "path", "output", "overwrite", "redact", "key_file", "pstore")
        _verify(verify)
        return
    if not output:
        raise UsageError("a bundle needs a file.", hint="-o FILE.tar.gz")
    digest, left_out = _pack(path, output, overwrite, pstore, redactor_of(redact, key_file))
    click.echo(f"bundle: {output}")
    click.echo(f"sha256 of its manifest: {digest}")
    if left_out:
        aside(f"left out, since nobody knows what is in them: {left_out} damaged records")


def _verify(path: str) -> None:
    from tracer.blackbox.archive import verify

    sizes, digest = verify(path)
    for name, size in sorted(sizes.items()):
        click.echo(f"ok  {size:>12}  {name}")
    click.echo(f"sha256 of its manifest: {digest}")


def _pack(
    path: str | None, output: str, overwrite: bool, pstore: tuple[str, ...], redactor: Redactor | None
) -> tuple[str, int]:
    import os
    import tempfile

    from tracer.blackbox import DEFAULT_PATH
    from tracer.blackbox.archive import write
    from tracer.blackbox.box import Box
    from tracer.blackbox.copy import copy_box, redact_box
    from tracer.commands._story import latest_box, story_of_copy

    path = path or latest_box(DEFAULT_PATH)
    left_out = 0
    with tempfile.TemporaryDirectory(prefix="foreshock-bundle-") as folder, Box(path) as box:
        copied = os.path.join(folder, "blackbox.fbx")
        if redactor is None:
            copy_box(path, copied)
        else:
            left_out = redact_box(box, copied, redactor)
        story = story_of_copy(box, copied, _LAST_NS, pstore, redactor)
        with Box(copied) as content:
            members = {"blackbox.fbx": copied}
            for name, text in _texts(story, content).items():
                members[name] = os.path.join(folder, name)
                with open(members[name], "w", encoding="utf-8") as file:
                    file.write(text)
        return write(output, members, overwrite=overwrite), left_out


def _texts(story: Story, box: Box) -> dict[str, str]:
    from tracer.analysis.verdict import judge
    from tracer.reports.json import dumps
    from tracer.reports.postmortem import as_dict, render

    verdict = judge(story.summary)
    fingerprint = box.header.get("fingerprint")
    return {
        "fingerprint.json": dumps({key: value for key, value in box.header.items() if key != "probes"}) + "\n",
        "postmortem.json": dumps(as_dict(story, verdict)) + "\n",
        "postmortem.txt": "\n".join(render(story, verdict)) + "\n",
        "settings.json": dumps(_settings(box, fingerprint if isinstance(fingerprint, dict) else {})) + "\n",
    }


def _settings(box: Box, fingerprint: dict[str, Any]) -> dict[str, Any]:
    """Return the kernel's settings when the agent began, and those of its detectors as they were last."""
    kernel = fingerprint.get("kernel")
    detectors: dict[str, str] = {}
    for windows in box.intervals(_SETTINGS_NS):
        for window in windows:
            if (window.probe, window.table) == ("detectors", "settings"):
                names = window.rows.dtype.names or ()
                if {"name", "value"} <= set(names):
                    rows = zip(window.rows["name"].tolist(), window.rows["value"].tolist(), strict=True)
                    detectors |= {_text(name): _text(value) for name, value in rows}
    return {
        "sysctl": fingerprint.get("sysctl", {}),
        "command_line": kernel.get("command_line", "") if isinstance(kernel, dict) else "",
        "detectors": dict(sorted(detectors.items())),
    }


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
