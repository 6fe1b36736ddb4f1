"""``foreshock`` and ``python -m tracer``: Ctrl-C ends them quietly from the first line on, imports included."""

import os
import signal
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> None:
    """Run the command line; before it begins and after it ends, Ctrl-C is no traceback either."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nohup and the like ignore it
    if ours:
        signal.signal(signal.SIGINT, _end)
    from tracer.commands import main as command

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    finally:
        if ours:
            signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
