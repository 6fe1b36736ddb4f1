"""Every read of the programs is as wide as the running kernel's member: the same check finds other kernels' changes."""

from __future__ import annotations

import re

import pytest

from tests.vm import reads as kernel_reads
from tests.vm.reads import differences, lacks, reads
from tracer.kernel.loader.btf import Btf
from tracer.layouts import bpf_folder
from tracer.probe import Member


@pytest.fixture(scope="module")
def btf() -> Btf:
    return Btf.running_kernel()


def test_every_read_fits_its_member(btf: Btf):
    assert list(differences(btf)) == []
    assert [text for text in lacks(btf) if "(needed)" in text] == []


def test_no_read_by_a_constant_is_overlooked():
    """Of all that name a constant, so that a new way to spell one does not go unchecked."""
    named = set()
    for file in bpf_folder().glob("*.bpf.[ch]"):
        named |= set(re.findall(r"read_\w+\([^;\n]*, ([A-Z]\w+__\w+)\)", file.read_text()))
    assert len(named) > 30
    assert named == set(reads())


def test_a_read_that_is_too_wide_is_told(btf: Btf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernel_reads, "reads", lambda: {"TASK_STRUCT__PID": {8}, "TASK_STRUCT__STACK": {8}})
    members = [Member("task_struct.pid"), Member("task_struct.stack"), Member("task_struct.gone")]
    monkeypatch.setattr(kernel_reads, "_members", lambda: members)
    monkeypatch.setattr(kernel_reads, "_tracepoints", list)
    assert list(differences(btf)) == ["task_struct.pid: 4 bytes, read as 8"]
    assert list(lacks(btf)) == ["task_struct.gone (needed)"]
