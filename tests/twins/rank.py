"""One rank of the twins' job: ``rank.py WORK_MS MINE OTHER DEVICE ACCELERATOR_MS``, with the standard library alone.

It computes, reads a block of its data now and then, tells the other rank and waits for it, waits for its accelerator,
and so on until it is killed, or its parent ends.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_READ_EVERY, _BLOCK = 4, 4096


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    work_s, accelerator_s = (float(sys.argv[place]) / 1e3 for place in (1, 5))
    mine, other = (os.open(path, os.O_RDWR) for path in sys.argv[2:4])
    data, page = os.open(sys.argv[4], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, _BLOCK)
    blocks = os.lseek(data, 0, os.SEEK_END) // _BLOCK
    step = 0
    while True:
        until = time.thread_time() + work_s
        while time.thread_time() < until:
            pass
        step += 1
        if step % _READ_EVERY == 0:
            os.preadv(data, [page], step % blocks * _BLOCK)
        os.write(other, b"x")
        os.read(mine, 1)
        time.sleep(accelerator_s)


if __name__ == "__main__":
    main()
