"""What a thread sleeps for, by its state and its stack in the kernel."""

from __future__ import annotations

import pytest

from tracer.kernel.sleepers import kind_of
from tracer.layouts import constants


def stack(*functions: str) -> bytes:
    return "".join(f"[<0>] {name}+0x74/0xf0\n" for name in (*functions, "do_syscall_64")).encode()


@pytest.mark.parametrize(
    ("state", "functions", "kind"),
    [
        ("D", ("io_schedule", "folio_wait_bit_common", "ext4_read"), "DISK"),
        ("D", ("rwsem_down_write_slowpath", "do_epoll_wait"), "RWSEM"),
        ("D", ("rpc_wait_bit_killable", "nfs4_wait"), "FILE"),
        ("D", ("nvidia_wait",), "UNINTERRUPTIBLE"),
        ("S", ("nvidia_wait",), "SLEEP"),
        ("S", ("schedule_timeout", "unix_stream_read_generic"), "SOCKET"),
        ("T", ("do_signal_stop",), "STOPPED"),
        ("S", (), "SLEEP"),
    ],
)
def test_the_innermost_function_that_is_known_decides(state: str, functions: tuple[str, ...], kind: str):
    assert kind_of(state.encode(), stack(*functions)) == constants("ledger")[f"LEDGER_{kind}"]


def test_where_no_stack_is_shown_the_state_decides():
    known = constants("ledger")
    assert kind_of(b"S", b"") == known["LEDGER_SLEEP"] and kind_of(b"S", b"futex_do_wait") == known["LEDGER_FUTEX"]
