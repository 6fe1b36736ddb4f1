"""A terminal of a known size to run a program in, and what it shows: tmux, with a server of its own."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from kernel.command import environment

__all__ = ["Screen"]

#: Tells whether the terminal's settings are back, and stays so that the screen can be looked at.
_SCRIPT = 'echo BEFORE; was=$(stty -g); "$@"; code=$?; test "$was" = "$(stty -g)" && echo "restored, code $code"; cat'


class Screen:
    """``command`` on a screen of ``columns`` by ``lines``, from the start of a ``with`` block to its end."""

    def __init__(
        self, folder: Path, command: Sequence[str], columns: int = 80, lines: int = 24, term: str = "screen"
    ) -> None:
        self._socket = str(folder / "tmux")
        self._command = shlex.join(["env", f"TERM={term}", "sh", "-c", _SCRIPT, "sh", *command])
        self._size = ("-x", str(columns), "-y", str(lines))

    def __enter__(self) -> Screen:
        self._tmux("new-session", "-d", *self._size, self._command)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Descriptors, since a pid may be another's by then.
        running = [os.pidfd_open(pid) for pid in self._children()]
        self._tmux("kill-server")
        left = [process for process in running if not select.select([process], [], [], 20)[0]]
        for process in left:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        for process in running:
            os.close(process)
        assert not left, "it does not end with its terminal"

    def lines(self, *, escapes: bool = False) -> list[str]:
        """Return what is shown, with the sequences for colours and attributes if ``escapes``."""
        return self._tmux("capture-pane", "-p", *(["-e"] if escapes else [])).splitlines()

    def until(self, condition: Callable[[list[str]], bool], what: str, seconds: float = 30) -> list[str]:
        """Wait for something to be shown; return what is."""
        limit = time.monotonic() + seconds
        while not condition(shown := self.lines()):
            assert time.monotonic() < limit, f"{what} is not shown:\n" + "\n".join(shown)
            time.sleep(0.05)
        return shown

    def shows(self, text: str) -> list[str]:
        return self.until(lambda lines: any(text in line for line in lines), text)

    def ended(self, code: int) -> None:
        """Wait until the program has ended with ``code`` and the terminal is as it was."""
        assert self.shows(f"restored, code {code}")[0] == "BEFORE"
        assert self._tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1\n"

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def kill(self, number: int) -> None:
        """Send the program a signal."""
        os.kill(self._children()[-1], number)

    def _children(self) -> list[int]:
        """Return the shell and, while it runs, the program."""
        shell = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return [shell, *map(int, children)]

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", self._socket, "-f", "/dev/null", *arguments]
        env = environment(LC_ALL="C.UTF-8")
        env.pop("TMUX", None)
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env, cwd="/").stdout
