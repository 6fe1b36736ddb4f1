"""RDMA ports on a made-up /sys/class/infiniband: what is counted, what is lost, what is left alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracer.kernel.rdma import MAX_PORTS, PORT, RdmaPorts
from tracer.kernel.rdma_counters import COLUMNS

NOTHING: Mapping[str, Any] = {}
ROCE = {
    "link_layer": "Ethernet",
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "400 Gb/sec (4X NDR)",
    "counters/port_rcv_data": 100,
    "counters/port_xmit_data": 200,
    "counters/port_rcv_packets": 10,
    "counters/port_xmit_packets": 20,
    "counters/symbol_error": 0,
    "counters/link_downed": 3,
    "hw_counters/lifespan": 10,
    "hw_counters/out_of_buffer": 5,
    "hw_counters/np_cnp_sent": 7,
}


def make_port(root: Path, device: str = "mlx5_0", files: Mapping[str, Any] = NOTHING) -> Path:
    folder = root / device / "ports/1"
    put(folder, {**ROCE, **files})
    return folder


def put(folder: Path, files: Mapping[str, Any]) -> None:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files opened from here on, by their last two path components."""
    seen: list[str] = []
    really_open = os.open

    def watch(path: Any, *rest: Any, **more: Any) -> int:
        seen.append("/".join(str(path).split("/")[-2:]))
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", watch)
    return seen


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], list[str]]:
    """Make opening files whose path contains a text fail; return the list of attempts."""

    def start(part: str, code: int) -> list[str]:
        attempts: list[str] = []
        really_open = os.open

        def watch(path: Any, *rest: Any, **more: Any) -> int:
            if part in str(path):
                attempts.append(str(path))
                raise OSError(code, os.strerror(code))
            return really_open(path, *rest, **more)

        monkeypatch.setattr(os, "open", watch)
        return attempts

    return start


def test_a_node_without_rdma_has_no_rows(tmp_path: Path) -> None:
    rows, losses = RdmaPorts(str(tmp_path / "none")).read()
    assert len(rows) == 0 and rows.dtype == PORT
    assert set(losses.values()) == {0}


def test_counts_differences_in_bytes(tmp_path: Path) -> None:
    port = make_port(tmp_path)
    (tmp_path / "mlx5_0/device/net/eth7").mkdir(parents=True)
    ports = RdmaPorts(str(tmp_path))
    assert len(ports.read()[0]) == 0
    put(port, {"counters/port_rcv_data": 100 + 250, "counters/port_xmit_packets": 29, "hw_counters/np_cnp_sent": 9})
    rows, losses = ports.read()
    (row,) = rows
    assert (row["device"], row["port"], row["netdev"]) == (b"mlx5_0", 1, b"eth7")
    assert (row["state"], row["phys_state"], row["link_layer"]) == (b"active", b"linkup", b"ethernet")
    assert row["rate_mbps"] == 400_000
    assert (row["rx_bytes"], row["tx_bytes"]) == (1000, 0)
    assert (row["tx_packets"], row["np_cnp_sent"], row["out_of_buffer"]) == (9, 2, 0)
    assert set(losses.values()) == {0}


def test_reads_efa_and_irdma_names(tmp_path: Path) -> None:
    efa = tmp_path / "efa_0/ports/1"
    irdma = tmp_path / "irdma0/ports/1"
    for port in (efa, irdma):
        put(port, {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)"})
    put(efa, {"hw_counters/rx_bytes": 5, "hw_counters/retrans_pkts": 1})
    put(irdma, {"hw_counters/ip4InOctets": 7, "hw_counters/ip6InOctets": 100})
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    put(efa, {"hw_counters/rx_bytes": 25, "hw_counters/retrans_pkts": 4})
    put(irdma, {"hw_counters/ip4InOctets": 8, "hw_counters/ip6InOctets": 110})
    rows, _ = ports.read()
    assert rows["rx_bytes"].tolist() == [20, 11]
    assert rows["retransmits"].tolist() == [3, 0]


def symbol_errors(rows: np.ndarray) -> int | None:
    """Return the only port's, None where they were not asked for."""
    (row,) = rows
    return int(row["symbol_errors"]) if "symbol_errors" in (rows.dtype.names or ()) else None


def test_a_column_is_slow_whichever_source_fills_it() -> None:
    for column, sources in COLUMNS.items():
        assert len({source.slow for source in sources}) == 1, column


def test_error_counters_are_read_every_few_intervals_and_lose_nothing(tmp_path: Path) -> None:
    port = make_port(tmp_path)
    ports = RdmaPorts(str(tmp_path), slow_every=3)
    ports.read()
    put(port, {"counters/symbol_error": 4})
    seen = [symbol_errors(ports.read()[0]) for _ in range(6)]
    assert seen == [None, None, 4, None, None, 0]


def test_the_last_read_compares_error_counters_out_of_turn(tmp_path: Path) -> None:
    port = make_port(tmp_path)
    ports = RdmaPorts(str(tmp_path), slow_every=100)
    ports.read()
    put(port, {"counters/symbol_error": 4})
    seen = [symbol_errors(ports.read()[0])]
    ports.complete()
    seen += [symbol_errors(ports.read()[0]) for _ in range(2)]
    assert seen == [None, 4, None]


def test_a_reset_is_counted_and_not_reported(tmp_path: Path) -> None:
    port = make_port(tmp_path)
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    put(port, {"counters/port_rcv_data": 1, "counters/port_xmit_data": 300})
    rows, losses = ports.read()
    assert len(rows) == 0 and losses["reset"] == 1
    put(port, {"counters/port_rcv_data": 3})
    rows, losses = ports.read()
    assert rows["rx_bytes"].tolist() == [8] and rows["tx_bytes"].tolist() == [0] and losses["reset"] == 0


def test_stuck_counters_are_a_loss(tmp_path: Path) -> None:
    # Values of a real card: leptonai/gpud#943.
    stuck = {"counters/port_xmit_wait": 4294967295, "counters/link_downed": 255, "counters/port_xmit_discards": 65530}
    port = make_port(tmp_path, files=stuck)
    ports = RdmaPorts(str(tmp_path), slow_every=1)
    assert ports.read()[1]["saturated"] == 2
    put(port, {"counters/port_xmit_discards": 65535})
    rows, losses = ports.read()
    assert losses["saturated"] == 3
    assert rows["tx_discards"].tolist() == [5]  # at least
    assert rows["link_downed"].tolist() == [0]


def test_only_listed_files_are_read(tmp_path: Path, opened: list[str]) -> None:
    port = make_port(tmp_path, files={"counters/port_unheard_of": 1, "hw_counters/diagnostic": 2})
    ports = RdmaPorts(str(tmp_path), slow_every=1)
    ports.read()
    ports.read()
    listed = {file for sources in COLUMNS.values() for source in sources for file in source.files}
    allowed = listed | {f"{port.name}/{file}" for file in ("state", "phys_state", "rate", "link_layer")}
    assert set(opened) <= allowed
    assert "counters/port_rcv_data" in opened


def test_a_refused_counter_takes_its_folder_along_and_is_not_tried_again(
    tmp_path: Path, refuse: Callable[[str, int], list[str]]
) -> None:
    port = make_port(tmp_path)
    attempts = refuse("/counters/", 22)
    ports = RdmaPorts(str(tmp_path), slow_every=1)
    for _ in range(3):
        rows, losses = ports.read()
    assert len(attempts) == 1
    assert losses["unreadable"] == 1
    put(port, {"hw_counters/out_of_buffer": 6})
    rows, _ = ports.read()
    assert rows["out_of_buffer"].tolist() == [1]


def test_a_refused_state_leaves_the_whole_port_alone(
    tmp_path: Path, refuse: Callable[[str, int], list[str]], opened: list[str]
) -> None:
    make_port(tmp_path)
    attempts = refuse("/state", 22)
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    rows, losses = ports.read()
    assert len(attempts) == 1 and losses["unreadable"] == 1
    assert not any("counters" in file for file in opened)
    assert rows["state"].tolist() == [b""]


def test_text_instead_of_a_number_is_unreadable(tmp_path: Path) -> None:
    make_port(tmp_path, files={"counters/symbol_error": "N/A (no PMA)"})
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    ports.complete()
    rows, losses = ports.read()
    assert losses["unreadable"] == 1 and rows["symbol_errors"].tolist() == [0]


def test_a_port_without_a_link_is_shown_and_not_asked(tmp_path: Path, opened: list[str]) -> None:
    make_port(tmp_path, files={"state": "1: DOWN", "phys_state": "3: Disabled"})
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    rows, _ = ports.read()
    assert rows["state"].tolist() == [b"down"] and rows["phys_state"].tolist() == [b"disabled"]
    assert not any("counters" in file for file in opened)


def test_excluded_devices_are_never_touched(tmp_path: Path, opened: list[str]) -> None:
    make_port(tmp_path, "mlx5_0")
    make_port(tmp_path, "mlx5_1")
    ports = RdmaPorts(str(tmp_path), frozenset({"mlx5_0"}))
    ports.read()
    assert ports.read()[0]["device"].tolist() == [b"mlx5_1"]


def test_ports_come_and_go(tmp_path: Path) -> None:
    make_port(tmp_path, "mlx5_0")
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    make_port(tmp_path, "mlx5_1")
    rows, losses = ports.read()
    assert len(rows) == 1 and losses["appeared"] == 1
    shutil.rmtree(tmp_path / "mlx5_0")
    rows, losses = ports.read()
    assert rows["device"].tolist() == [b"mlx5_1"] and losses["gone"] == 1
    assert losses["appeared"] == 0


def test_a_port_made_anew_begins_anew(tmp_path: Path) -> None:
    port = make_port(tmp_path)
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    port.rename(tmp_path / "old")  # keeps the inode from being used again
    make_port(tmp_path, files={"counters/port_rcv_data": 10**6})
    rows, losses = ports.read()
    assert len(rows) == 0 and losses["appeared"] == 1 and losses["reset"] == 0


def test_the_number_of_ports_is_bounded(tmp_path: Path) -> None:
    for number in range(MAX_PORTS + 3):
        put(tmp_path / f"d{number}/ports/1", {"state": "1: DOWN"})
    ports = RdmaPorts(str(tmp_path))
    ports.read()
    rows, losses = ports.read()
    assert len(rows) == MAX_PORTS and losses["left_out"] == 3


def test_the_declaration_has_the_columns_of_the_source() -> None:
    from tracer.kernel.links import LINK
    from tracer.probes.netdev import PROBE

    for table, dtype in zip(PROBE.tables, (LINK, PORT), strict=True):
        assert [column.name for column in table.columns] == list(dtype.names or ())
        counters = getattr(table, "counters", ())
        assert all(dtype[name] == np.dtype("<u8") for name in counters)
