"""POST JSON to a URL: every wait is bounded, certificates are checked, redirects are not followed.

The standard library's http.client is enough for one request at a time whose answer hardly matters. urllib adds
redirects, which would carry the token to another host, and a pool of connections is of no use once a minute.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import tracer
from tracer.errors import OutputError, UsageError
from tracer.sinks.sink import Refused
from tracer.sinks.token import read_token

__all__ = ["Poster"]

_STEP_SECONDS = 5.0  # connecting, and each read
_WHOLE_SECONDS = 15.0  # a server that answers a byte at a time is given up then
_MOST_ANSWER = 4096
_TRY_AGAIN = (408, 425, 429)


class Poster:
    """Posts to one URL. Options: ``token-file`` (sent as a bearer token), ``ca-file`` (instead of the system's CAs)."""

    def __init__(self, url: str, options: dict[str, str], path: str = "") -> None:
        """Check the URL and read the files; ``path`` is appended to the URL's own. Raises UsageError."""
        parts = _split(url)
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._parts = parts
        self._target = (parts.path.rstrip("/") if path else parts.path or "/") + path
        self._target += f"?{parts.query}" if parts.query else ""
        self._headers = {"Content-Type": "application/json", "User-Agent": f"foreshock/{tracer.__version__}"}
        if "token-file" in options:
            self._headers["Authorization"] = f"Bearer {read_token(options['token-file'])}"
        self._tls = _context(options.get("ca-file")) if parts.scheme == "https" else None

    def post(self, value: Any) -> None:
        """POST ``value``. Raises OutputError; Refused when the same will be refused again."""
        body = json.dumps(value, allow_nan=False).encode("ascii")
        connection = self._connection()
        # Socket timeouts are per read: one that drips would never end.
        alarm = threading.Timer(_WHOLE_SECONDS, _abort, (connection,))
        alarm.daemon = True
        alarm.start()
        try:
            connection.request("POST", self._target, body, self._headers)
            answer = connection.getresponse()
            text = answer.read(_MOST_ANSWER)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise OutputError(
                f"no answer from {self.name}: {_reason(error)}.", hint="is it up, and reachable from here?"
            ) from None
        finally:
            alarm.cancel()
            connection.close()
        _judge(answer, text)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._tls:
            return http.client.HTTPSConnection(host, port, timeout=_STEP_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=_STEP_SECONDS)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and url.isascii()
            and " " not in url
        ):
            if parts.username is None:
                return parts
            raise UsageError("a URL must not hold a password.", hint="use #token-file=FILE")
    except ValueError:
        pass
    raise UsageError(f"'{url}' is no http:// or https:// URL.", hint="for example https://hooks.example/alerts")


def _context(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is not None and not Path(ca_file).is_file():
        raise UsageError(
            f"there is no certificate file {ca_file}.", hint="a PEM file of the CA that signed the server's"
        )
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca_file} holds no certificate: {error}.", hint="it must be PEM") from None


def _abort(connection: http.client.HTTPConnection) -> None:
    # Of the plain socket: TLS's own shutdown is not for another thread.
    with suppress(OSError):
        if connection.sock is not None:
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def _judge(answer: http.client.HTTPResponse, text: bytes) -> None:
    """Raise unless the server has taken it."""
    if 200 <= answer.status < 300:
        return
    said = " ".join(text[:200].decode("utf-8", "replace").split())
    what = f"it answers {answer.status} {answer.reason[:100]}{f': {said}' if said else ''}"
    if 300 <= answer.status < 400:
        where = answer.headers.get("Location", "")[:200]
        raise Refused(f"{what}; redirects are not followed.", hint=f"give the URL itself; it says {where!r}")
    if 400 <= answer.status < 500 and answer.status not in _TRY_AGAIN:
        raise Refused(f"{what}.", hint="check the URL and the token")
    raise OutputError(f"{what}.")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it takes too long"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"it speaks no HTTP ({type(error).__name__})"
