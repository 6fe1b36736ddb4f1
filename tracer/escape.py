"""Make names from a node safe to print: a task may call itself anything, also a terminal command."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

# Control, format (bidirectional overrides, zero-width), surrogate, private, unassigned; line and paragraph separators.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MAX_COMBINING = 4  # a stack of marks can cover the lines above and below


def printable(text: str | bytes) -> str:
    r"""Return ``text`` with everything a terminal or a reader could be fooled by written as an escape.

    Control characters, escape sequences, bidirectional and zero-width characters, line separators and
    invalid bytes become ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``. Backslashes stay: systemd's cgroup names have them.
    Calling it twice changes nothing.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable():
        return text
    result: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        unsafe = category in _UNSAFE or marks > _MAX_COMBINING
        result.append(_escape(character) if unsafe else character)
    return "".join(result)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
