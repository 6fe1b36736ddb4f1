"""The report as one file: nothing in it comes from elsewhere, and nothing else may run in it."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

import tracer
from tracer.escape import printable

__all__ = ["page", "room"]

_ASSETS = files("tracer.reports.html") / "assets"


def page(data: str, title: str, beside: Sequence[str] = ()) -> str:
    """Return the page around ``Payload.text``, and those of recordings beside it.

    ``title`` is shown until the data is.
    """
    style, script, theme = _asset("report.css"), _asset("report.js"), _asset("theme.js")
    scripts = f"script-src {_hash(script)} {_hash(theme)}"
    parts = {
        "policy": f"default-src 'none'; {scripts}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'",
        "version": tracer.__version__,
        "title": html.escape(printable(title)),
        "style": style,
        "theme": theme,
        "data": data,
        "beside": "".join(f'<script type="application/octet-stream">{one}</script>\n' for one in beside).strip(),
        "script": script,
        "licenses": _asset("licenses.txt").replace("--", "- -"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("report.html"))


def room(most_bytes: int) -> int:
    """Return how much data a page of ``most_bytes`` has room for."""
    return most_bytes - len(page("", "").encode()) - 4096  # a long title


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
