"""Which files of an RDMA port are read, and the column each one fills: an allow list, because reading isn't free.

On some cards reading a counter makes the driver write to the kernel log (leptonai/gpud#1164), on all of them it is a
command to the card's firmware.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLUMNS", "SLOW", "Source"]


@dataclass(frozen=True)
class Source:
    """One way to fill a column: the sum of ``files`` times ``scale``.

    ``bits`` is the counter's width where the InfiniBand specification lets it stick at its maximum (PortCounters;
    the widths are those of drivers/infiniband/core/sysfs.c), 0 where it doesn't. ``slow`` counters are read every few
    intervals only: errors that are rare, or that cost a firmware command each.
    """

    files: tuple[str, ...]
    scale: int = 1
    bits: int = 0
    slow: bool = False


def _pma(file: str, bits: int, scale: int = 1, slow: bool = True) -> Source:
    return Source((f"counters/{file}",), scale, bits, slow)


def _hw(*files: str, slow: bool = False) -> Source:
    return Source(tuple(f"hw_counters/{file}" for file in files), slow=slow)


# By column, the sources in order of preference; the first that the port has is kept. The file names are those of
# mlx5 and the core (first), EFA, bnxt_re and irdma.
COLUMNS: dict[str, tuple[Source, ...]] = {
    # The specification counts data in units of four octets.
    "rx_bytes": (
        _pma("port_rcv_data", 32, scale=4, slow=False),
        _hw("rx_bytes"),
        _hw("ip4InOctets", "ip6InOctets"),
    ),
    "rx_packets": (_pma("port_rcv_packets", 32, slow=False), _hw("rx_pkts"), _hw("ip4InPkts", "ip6InPkts")),
    "tx_bytes": (
        _pma("port_xmit_data", 32, scale=4, slow=False),
        _hw("tx_bytes"),
        _hw("ip4OutOctets", "ip6OutOctets"),
    ),
    "tx_packets": (_pma("port_xmit_packets", 32, slow=False), _hw("tx_pkts"), _hw("ip4OutPkts", "ip6OutPkts")),
    "tx_wait": (_pma("port_xmit_wait", 32, slow=False),),
    "rx_errors": (_pma("port_rcv_errors", 16),),
    "rx_remote_errors": (_pma("port_rcv_remote_physical_errors", 16),),
    "rx_constraint_errors": (_pma("port_rcv_constraint_errors", 8),),
    "tx_constraint_errors": (_pma("port_xmit_constraint_errors", 8),),
    "tx_discards": (_pma("port_xmit_discards", 16), _hw("tx_roce_discards", slow=True)),
    "symbol_errors": (_pma("symbol_error", 16),),
    "link_recovered": (_pma("link_error_recovery", 8),),
    "link_downed": (_pma("link_downed", 8),),
    "integrity_errors": (_pma("local_link_integrity_errors", 4),),
    "buffer_overruns": (_pma("excessive_buffer_overrun_errors", 4),),
    "vl15_dropped": (_pma("VL15_dropped", 16),),
    "rx_dropped": (_hw("rx_drops"), _hw("rx_roce_discards"), _hw("ip4InDiscards", "ip6InDiscards")),
    "out_of_buffer": (_hw("out_of_buffer"),),
    "out_of_sequence": (_hw("out_of_sequence"), _hw("oos_drop_count")),
    "duplicate_request": (_hw("duplicate_request", slow=True),),
    "packet_seq_err": (_hw("packet_seq_err"), _hw("seq_err_naks_rcvd")),
    "implied_nak_seq_err": (_hw("implied_nak_seq_err", slow=True),),
    "local_ack_timeout_err": (_hw("local_ack_timeout_err"), _hw("retrans_timeout_events")),
    "rnr_nak_retry_err": (_hw("rnr_nak_retry_err"), _hw("rnr_naks_rcvd")),
    "retries_exceeded": (_hw("req_transport_retries_exceeded", slow=True), _hw("max_retry_exceeded", slow=True)),
    "req_cqe_error": (_hw("req_cqe_error", slow=True),),
    "resp_cqe_error": (_hw("resp_cqe_error", slow=True),),
    "np_ecn_marked": (_hw("np_ecn_marked_roce_packets"), _hw("rx_ecn_marked_pkts"), _hw("RxECNMrkd")),
    "np_cnp_sent": (_hw("np_cnp_sent"), _hw("tx_cnp_pkts"), _hw("cnpSent")),
    "rp_cnp_handled": (_hw("rp_cnp_handled"), _hw("rx_cnp_pkts"), _hw("cnpHandled")),
    "rp_cnp_ignored": (_hw("rp_cnp_ignored"), _hw("cnpIgnored")),
    "retransmits": (_hw("roce_adp_retrans"), _hw("to_retransmits"), _hw("retrans_pkts")),
    "retransmit_timeouts": (_hw("roce_adp_retrans_to", slow=True),),
    "slow_restarts": (_hw("roce_slow_restart", slow=True),),
    "rx_icrc_errors": (_hw("rx_icrc_encapsulated", slow=True),),
}

#: All sources of such a column are slow, so that it is known for every port of an interval or for none.
SLOW = frozenset(column for column, sources in COLUMNS.items() if any(source.slow for source in sources))
