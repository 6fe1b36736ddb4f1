"""The sentinels as the agent sees them: forked, watched, forked again when one dies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.agent import placing
from tracer.agent.board import Board
from tracer.agent.duty import Duty, rehearse, serve
from tracer.agent.wire import Wire
from tracer.alerts.alert import Alert
from tracer.kernel import forking
from tracer.kernel.session import Session
from tracer.units import SECOND

__all__ = ["Crew", "Post"]

#: One that dies is replaced, and one that dies again after twice as long, up to 5 minutes.
_AGAIN_NS = 5 * SECOND
_MOST_DOUBLED = 6
#: One that has not turned for so long is told: its CPU may be the one that is stuck.
_SILENT_NS = 2 * SECOND
#: A stream's goodbye may take one.
_GOODBYE_SECONDS = 2.0


@dataclass
class Post:
    """One sentinel: where it is and what became of it. ``lacks`` is what it has to do without, in a few words."""

    number: int
    cpu: int
    pid: int = 0
    wire: Wire | None = None
    ready: bool = False
    lacks: tuple[str, ...] = ()
    forked_ns: int = 0
    silent: bool = False
    deaths: int = 0


class Crew:
    """Forks a sentinel to each of ``cpus``, and keeps them there. ``posts`` are all of them.

    Construct it before this process starts a thread.
    """

    def __init__(self, session: Session, duty: Duty, board: Board, cpus: Sequence[int]) -> None:
        self._session = session
        self._duty = duty
        self._board = board
        self.posts = [Post(number, cpu) for number, cpu in enumerate(cpus)]
        if self.posts:
            rehearse(session, duty, board)
        forking.ready_memory()
        for post in self.posts:
            self._fork(post)

    def descriptors(self) -> list[int]:
        """Return what becomes readable when a sentinel has told something, or died."""
        return [post.wire.fileno() for post in self.posts if post.wire]

    @property
    def dropped(self) -> int:
        """Messages that sentinels gave up, since no sink took them."""
        return int(self._board.sentinels["dropped"].sum())

    def received(self) -> tuple[list[Alert], list[str]]:
        """Return the alerts that sentinels told since the last call, and what there is to say of themselves."""
        alerts: list[Alert] = []
        notes: list[str] = []
        for post in self.posts:
            try:
                for kind, value in post.wire.received() if post.wire else ():
                    if kind == "alert":
                        alerts.append(value)
                    elif kind == "note":
                        notes.append(f"sentinel {post.number}: {value}")
                    elif kind == "ready":
                        post.ready, post.lacks = True, tuple(value)
            except EOFError:
                notes.append(self._buried(post))
        return alerts, notes

    def watch(self, now_ns: int, online: frozenset[int]) -> list[str]:
        """Fork again who is missing; return what there is to say: who is silent, who is back, who had to move."""
        notes: list[str] = []
        for post in self.posts:
            if post.pid and post.cpu not in online:
                notes.append(f"sentinel {post.number}: CPU {post.cpu} went offline")
                self._end(post)
            if not post.pid:
                notes += self._replace(post, now_ns)
                continue
            beat_ns = max(int(self._board.sentinels[post.number]["beat_ns"]), post.forked_ns)
            silent = now_ns - beat_ns > _SILENT_NS
            if silent != post.silent:
                post.silent = silent
                how = f"has not run for {(now_ns - beat_ns) / SECOND:.1f} s" if silent else "runs again"
                notes.append(f"sentinel {post.number} on CPU {post.cpu} {how}")
        return notes

    def close(self) -> None:
        """End them: they say what they have to say, and goodbye, and go."""
        for post in self.posts:
            self._dismiss(post)
        for post in self.posts:
            self._end(post, seconds=_GOODBYE_SECONDS)

    def _replace(self, post: Post, now_ns: int) -> list[str]:
        if now_ns - post.forked_ns < _AGAIN_NS << min(max(post.deaths - 1, 0), _MOST_DOUBLED):
            return []
        places = placing.topology(placing.housekeeping())
        found = placing.choose(places, 1, [other.cpu for other in self.posts if other is not post])
        if not found:
            return []
        post.cpu = post.cpu if post.cpu in places else found[0]
        return [self._fork(post) or f"sentinel {post.number} runs again, on CPU {post.cpu}"]

    def _dismiss(self, post: Post) -> None:
        if post.wire:
            post.wire.say("bye")
            post.wire.close()
            post.wire = None

    def _fork(self, post: Post) -> str:
        """Fork a sentinel; return "" or why that is not possible now."""
        post.forked_ns, post.silent, post.ready = time.monotonic_ns(), False, False
        ours, theirs = Wire.pair()

        def work() -> None:
            serve(post.number, post.cpu, theirs, self._session, self._duty, self._board)

        try:
            post.pid = forking.fork(f"foreshock: sentinel {post.number}", work)
        except OSError as error:
            ours.close()
            post.deaths += 1
            return f"sentinel {post.number} can't be forked: {error.strerror}"
        finally:
            theirs.close()
        post.wire = ours
        return ""

    def _buried(self, post: Post) -> str:
        """Take a dead one off the list and return what to say of it."""
        pid, post.deaths = post.pid, post.deaths + 1
        self._end(post)
        return f"sentinel {post.number} on CPU {post.cpu} (pid {pid}) died"

    def _end(self, post: Post, seconds: float = 0.0) -> None:
        """Wait so long for its end, then kill it; one that is stuck in the kernel is left to the kernel."""
        if post.pid:
            forking.end(post.pid, seconds)
        if post.wire:
            post.wire.close()
        post.pid, post.wire = 0, None
