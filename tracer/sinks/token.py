"""A token comes from a file: on a command line or in a URL everybody on the node could read it."""

from __future__ import annotations

from tracer.errors import UsageError

__all__ = ["read_token"]

_MOST_TOKEN = 4096


def read_token(path: str) -> str:
    """Return the token in a file. Raises UsageError."""
    try:
        with open(path, "rb") as file:
            token = file.read(_MOST_TOKEN + 1).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not ASCII text"
        raise UsageError(f"the token in {path} can't be read: {why}.", hint="one line of text, mode 0600") from None
    if not token or not token.isprintable() or len(token) > _MOST_TOKEN:
        raise UsageError(f"{path} holds no token.", hint="one line of text, mode 0600")
    return token
