"""A task's name ends at its first NUL, whatever lies behind."""

from __future__ import annotations

import numpy as np

from tracer.kernel.names import cut_names


def test_what_an_earlier_name_has_left_is_cut_off():
    rows = np.zeros(3, [("pid", "u4"), ("comm", "S16"), ("holder_comm", "S16"), ("text", "S8")])
    rows["comm"] = b"python\0ng-init", b"sixteen letters!", b"\0old"
    rows["holder_comm"] = b"kworker/0:1", b"a\0b\0c", b""
    rows["text"] = b"a\0b"
    kept = rows["comm"].tolist()
    cut = cut_names(rows)
    assert rows["comm"].tolist() == kept and cut_names(cut) is cut
    rows = cut
    assert rows["comm"].tolist() == [b"python", b"sixteen letters!", b""]
    assert rows["holder_comm"].tolist() == [b"kworker/0:1", b"a", b""]
    assert rows["text"].tolist() == [b"a\0b"] * 3
    assert len(cut_names(rows[:0])) == 0
