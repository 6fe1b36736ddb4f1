"""TLS over bytes instead of sockets: limits, timeouts and complaints are then the same with and without it."""

from __future__ import annotations

import ssl

from tracer.errors import RecordingError, UsageError

__all__ = ["Tls", "server_context"]

_READ = 1 << 16


class Tls:
    """The receiver's end of one TLS connection. ``open``: the handshake is done, and ``wrap`` can be used."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.open = False
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    def take(self, data: bytes) -> bytes:
        """Return the plain bytes in ``data``. Raises RecordingError."""
        self._in.write(data)
        plain = bytearray()
        try:
            if not self.open:
                self._tls.do_handshake()
                self.open = True
            while piece := self._tls.read(_READ):
                plain += piece
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        except ssl.SSLError as error:
            raise RecordingError(
                f"no TLS that is accepted: {(error.reason or str(error)).replace('_', ' ').lower()}."
            ) from None
        return bytes(plain)

    def wrap(self, data: bytes) -> None:
        """Encrypt ``data`` into what ``to_send`` returns next."""
        self._tls.write(data)

    def to_send(self) -> bytes:
        """Return what has to be sent now."""
        return self._out.read()


def server_context(cert: str | None, key: str | None, ca: str | None) -> ssl.SSLContext | None:
    """Return the TLS to serve, None for none; with ``ca`` senders must have its certificates. Raises UsageError."""
    if cert is None:
        if key is not None or ca is not None:
            raise UsageError("TLS needs a certificate.", hint="--tls-cert FILE")
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
        # A key with a password would have OpenSSL ask for it on the terminal.
        context.load_cert_chain(cert, key, password="")
    except OSError as error:
        raise UsageError(
            f"the certificates can't be used: {error}.", hint="PEM files, a key without password"
        ) from None
    if ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
