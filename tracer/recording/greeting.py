"""How two ends of a connection of frames get to know each other: the first frames, and the proof of a shared token.

The receiver speaks first, with a nonce. The sender answers with who it is and, where there is a token, an HMAC over
both: the token itself never travels. The receiver's second frame says whether that is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracer.errors import RecordingError
from tracer.recording.frames import PREAMBLE, Frame, Kind, pack_frame
from tracer.recording.payload import unpack_payload

__all__ = ["GREETING_BYTES", "Hello", "answer", "challenge", "new_nonce", "read_answer", "read_nonce"]

#: More than any frame of a greeting takes; a longer one is none.
GREETING_BYTES = 2048
_MOST_NAME = 255
_SHORTEST_NS, _LONGEST_NS = 10_000_000, 60_000_000_000


@dataclass(frozen=True)
class Hello:
    """Who speaks: node, this boot of it, which of its processes, how often, and what it dropped before now.

    ``machine`` tells two nodes of one name apart; "" where it has no id.
    """

    node: str
    boot_id: str
    source: str
    interval_ns: int
    dropped: int = 0
    machine: str = ""

    def packed(self, nonce: str, token: str | None) -> bytes:
        """Return what the sender opens a connection with."""
        proof = {} if token is None else {"proof": self._proof(nonce, token)}
        return PREAMBLE + pack_frame(Kind.HELLO, {**self.__dict__, **proof})

    @classmethod
    def read(cls, frame: Frame, nonce: str, token: str | None) -> Hello:
        """Return who speaks. Raises RecordingError when it is no greeting, or ``token`` is not the sender's."""
        said = _map(frame)
        names = [said.get(name) for name in ("node", "boot_id", "source")]
        if not all(isinstance(name, str) and 0 < len(name) <= _MOST_NAME for name in names):
            raise RecordingError("it does not say who it is.")
        node, boot_id, source = map(str, names)
        machine = said.get("machine", "")
        if not isinstance(machine, str) or len(machine) > _MOST_NAME:
            raise RecordingError("its machine is none.")
        hello = cls(node, boot_id, source, said.get("interval_ns", 0), said.get("dropped", 0), machine)
        if type(hello.interval_ns) is not int or not _SHORTEST_NS <= hello.interval_ns <= _LONGEST_NS:
            raise RecordingError("its interval is none.")
        if type(hello.dropped) is not int or hello.dropped < 0:
            raise RecordingError("what it dropped is no number.")
        proof = said.get("proof", "")
        if token is not None and not (
            isinstance(proof, str) and hmac.compare_digest(proof.encode(), hello._proof(nonce, token).encode())
        ):
            raise RecordingError("its token is wrong, or it has none.")
        return hello

    def _proof(self, nonce: str, token: str) -> str:
        # Over the identity, too: a proof overheard is of no use to another node.
        who = (self.node, self.boot_id, self.source, str(self.interval_ns), self.machine)
        text = "\0".join(("foreshock stream 1", nonce, *who))
        return hmac.new(token.encode(), text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def new_nonce() -> str:
    """Return a nonce, for one connection."""
    return secrets.token_hex(16)


def challenge(nonce: str) -> bytes:
    """Return what the receiver opens a connection with."""
    return PREAMBLE + pack_frame(Kind.HELLO, {"nonce": nonce})


def answer(refused: str = "") -> bytes:
    """Return the receiver's word on a greeting: welcome, or why not."""
    return pack_frame(Kind.HELLO, {"refused": refused} if refused else {"welcome": True})


def read_nonce(frame: Frame) -> str:
    """Return a challenge's nonce. Raises RecordingError when it is none."""
    nonce = _map(frame).get("nonce")
    if not isinstance(nonce, str) or not 16 <= len(nonce) <= 64:
        raise RecordingError("it is no receiver of streams.")
    return nonce


def read_answer(frame: Frame) -> str:
    """Return "" for welcome, else why the receiver refused. Raises RecordingError."""
    said = _map(frame)
    refused = said.get("refused", "")
    if said.get("welcome") is not True and not (isinstance(refused, str) and refused):
        raise RecordingError("its answer is none.")
    return "" if said.get("welcome") is True else str(refused)[:200]


def _map(frame: Frame) -> Mapping[str, Any]:
    if frame.kind != Kind.HELLO:
        raise RecordingError("it does not greet.")
    said, _ = unpack_payload(frame.payload)
    return said
