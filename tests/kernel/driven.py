"""Probes whose programs a test runs itself, with arguments of its own, beside the kernel's own events.

BTF raw tracepoints can't be run that way and read through the pointers they are given. So the same C text is
loaded as plain raw tracepoints, with reads that answer 0 for an address that isn't one.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel.traced import Traced
from kernel.workload import test_run

import tracer.kernel.session
from tracer.layouts import bpf_folder
from tracer.window import Window

__all__ = ["Driven"]

_DIRECT = "#define read_kernel(ptr, type, offset) (*(type *)((void *)(ptr) + (offset)))"
_CHECKED = (
    "#define read_kernel(ptr, type, offset) "
    "({ type value = 0; bpf_probe_read_kernel(&value, sizeof(value), (void *)((u64)(ptr) + (offset))); value; })"
)


class Driven:
    """One probe and what it requires; ``run`` calls a program on CPU 0."""

    CPU = 0

    def __init__(self, probe: str) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            copy = Path(folder) / "bpf"
            shutil.copytree(bpf_folder(), copy)
            _replace(copy / "foreshock.bpf.h", _DIRECT, _CHECKED)
            # An argument is a plain number here, from which the verifier lets no pointer be taken.
            _replace(copy / "napi.bpf.c", "(u64)napi - (u64)get_hist_edges()", "(u64)napi")
            job = tracer.kernel.session.job
            patch.setattr(tracer.kernel.session, "job", lambda *given: _raw(job(*given), str(copy)))
            self._traced = Traced([probe])
        self.session = self._traced.session
        self._affinity = os.sched_getaffinity(0)
        # Elsewhere the kernel would send an interrupt and run the program inside it.
        os.sched_setaffinity(0, {self.CPU})

    def run(self, program: str, *arguments: int) -> None:
        """Call ``program`` with a tracepoint's arguments."""
        padded = (*(value & 0xFFFFFFFFFFFFFFFF for value in arguments), *(0,) * (12 - len(arguments)))
        test_run(self.session._loaded.programs[program], context=struct.pack("<12Q", *padded), cpu=self.CPU)

    def window(self, table: str) -> Window:
        """Return what ``table`` saw since the last call, on the CPU that programs ran on."""
        window = self._traced.collect()[table]
        return Window(
            window.probe, window.table, window.start_ns, window.end_ns,
            window.rows[window.rows["cpu"] == self.CPU], window.losses,
        )  # fmt: skip

    def rows(self, table: str) -> np.ndarray:
        return self.window(table).rows

    def close(self) -> None:
        os.sched_setaffinity(0, self._affinity)
        self._traced.close()


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _raw(job: dict[str, Any], folder: str) -> dict[str, Any]:
    for probe in job["probes"]:
        for hook in probe["hooks"]:
            hook["type"] = "raw"
    return {**job, "bpf": folder}
