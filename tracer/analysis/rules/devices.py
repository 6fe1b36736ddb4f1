"""Do network devices and RDMA ports drop, fail or flap?"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.rows import text
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import count, many, percent

__all__ = ["network_devices", "rdma_ports"]

# What each counter usually means; rx_dropped alone also counts frames nobody wanted, which harm nobody.
_CAUSES = {
    "rx_missed": "the device's ring was full: its CPU came too late",
    "rx_fifo": "the device's own buffer overran",
    "rx_over": "the device's own buffer overran",
    "rx_errors": "frames arrived broken: cable, optics, switch port",
    "rx_dropped": "dropped before the stack (also frames of protocols that nobody listens to)",
    "tx_dropped": "queue full or device stopped",
    "tx_errors": "the device could not send",
}
_PORT_CAUSES = {
    "out_of_buffer": "receive queue empty: the application or its CPU came too late",
    "packet_seq_err": "packets were lost in the fabric",
    "out_of_sequence": "packets were lost or reordered in the fabric",
    "local_ack_timeout_err": "the peer did not answer in time",
    "rnr_nak_retry_err": "the peer had no receive buffer",
    "retries_exceeded": "a connection was given up",
    "symbol_errors": "bits arrived broken: cable, optics",
    "link_recovered": "the link retrained",
    "integrity_errors": "the link was about to fail",
    "rx_errors": "packets arrived broken",
    "rx_dropped": "the port dropped packets",
    "tx_discards": "the port could not send in time (congestion, link down)",
}


# What the kernel calls devices without hardware, as a driver or a kind: their carrier follows containers and members.
_VIRTUAL = frozenset(
    {
        *("802.1Q VLAN Support", "amt", "batadv", "bridge", "dummy", "erspan", "geneve", "gre", "gretap", "gtp", "hsr"),
        *("ifb", "ip6gre", "ip6gretap", "ip6tnl", "ipip", "ipvlan", "ipvtap", "loopback", "macsec", "macvlan"),
        *("macvtap", "netdevsim", "netkit", "nlmon", "openvswitch", "sit", "tap", "tun", "tunnel", "vcan", "veth"),
        *("vlan", "vrf", "vti", "vti6", "vxcan", "vxlan", "wireguard", "xfrm"),
    }
)
_GROUPED = frozenset({"bond", "bonding", "team"})


def network_devices(summary: Summary) -> Outcome:
    """Judge ``netdev.link``: drops and errors against packets, and carrier losses."""
    table = summary.table("netdev", "link")
    if table is None:
        return not_recorded("network devices", "netdev", summary)
    groups = {text(device): group for (device,), group in table.groups("device").items()}
    if not groups:
        return missing("network devices: netdev was recorded, but saw none")
    findings = [finding for device, group in groups.items() for finding in _link(device, group)]
    allowed = f"under {percent(thresholds.DEVICE_DROPS)} or {thresholds.DEVICE_DROPS_LEAST} packets"
    return outcome(findings, "device drops", _measured([*groups.values()]), allowed)


def _measured(groups: list[Group]) -> str:
    """The largest share of the devices that are judged; of the others how many packets at most."""
    losses = [_losses(group) for group in groups]
    judged = [share for total, share in losses if total >= thresholds.DEVICE_DROPS_LEAST]
    few = max(total for total, _ in losses)
    lost = f"{percent(max(judged))} of packets" if judged else f"{many(few, 'packet')} of a device" if few else "none"
    return f"{lost}, links stable"


def _losses(group: Group) -> tuple[int, float]:
    """Return a device's drops and errors, and their share of its packets."""
    total = sum(group.sums[name] for name in _CAUSES)
    packets = group.sums["rx_packets"] + group.sums["tx_packets"]
    return total, total / (packets + total) if total else 0.0


def rdma_ports(summary: Summary) -> Outcome:
    """Judge ``netdev.rdma``: any of the error counters matters, because RDMA expects no loss at all."""
    table = summary.table("netdev", "rdma")
    if table is None:
        if summary.seen("netdev"):
            return missing("RDMA ports: netdev was recorded without them")
        return not_recorded("RDMA ports", "netdev", summary)
    groups = table.groups("device", "port")
    if not groups:
        return missing("RDMA ports: this node has none")
    findings: list[Finding] = []
    for (device, port), group in groups.items():
        name = f"{text(device)} port {port}"
        if group.sums["link_downed"]:
            findings.append(_flap(name, group.sums["link_downed"], "rdma"))
        bad = {counter: number for counter in _PORT_CAUSES if (number := group.sums[counter])}
        if bad:
            findings.append(_port(name, bad))
    return outcome(findings, "RDMA port errors", f"none on {many(len(groups), 'port')}", "none")


def _link(device: str, group: Group) -> Iterator[Finding]:
    driver = text(group.gauges.get("driver", ""))
    if group.sums["carrier_changes"] and driver not in _VIRTUAL:
        yield _flap(device, group.sums["carrier_changes"], "netdev", grouped=driver in _GROUPED)
    bad = {name: number for name in _CAUSES if (number := group.sums[name])}
    packets = group.sums["rx_packets"] + group.sums["tx_packets"]
    total, share = _losses(group)
    if total < thresholds.DEVICE_DROPS_LEAST or share <= thresholds.DEVICE_DROPS:
        return
    main = max(bad, key=lambda name: bad[name])
    yield Finding(
        rule="netdev.drops",
        topic="drops and errors",
        # Dropped frames may be unwanted ones; every other counter is real loss.
        severity=Severity.NOTE if set(bad) == {"rx_dropped"} else Severity.WARNING,
        subject=device,
        what=(
            f"{device}: {count(total)} drops and errors in {many(packets, 'packet')}, {percent(share)} "
            f"({', '.join(f'{name} {count(number)}' for name, number in bad.items())}; normal: under "
            f"{percent(thresholds.DEVICE_DROPS)})."
        ),
        who=f"Mostly {main}: {_CAUSES[main]}.",
        next=f"ethtool -S {device}; compare with softirq delay and network polls of its CPUs",
        anchor="devices",
        value=share,
        threshold=thresholds.DEVICE_DROPS,
        unit="1",
        values={"device": device, **bad},
    )


def _flap(name: str, times: int, probe: str, *, grouped: bool = False) -> Finding:
    return Finding(
        rule=f"{probe}.flap",
        topic="link state changes",
        severity=Severity.NOTE if grouped else Severity.CRITICAL,
        subject=name,
        what=f"{name}: the link changed its state {many(times, 'time')} (normal: never).",
        who="",
        next=("see its member devices" if grouped else "check cable, optics and switch port")
        + "; the kernel log has the times",
        anchor="devices",
        value=float(times),
        threshold=0.0,
        unit="1",
        values={"device": name},
    )


def _port(name: str, bad: dict[str, int]) -> Finding:
    main = max(bad, key=lambda counter: bad[counter])
    return Finding(
        rule="rdma.errors",
        topic="port errors",
        severity=Severity.WARNING,
        subject=name,
        what=f"{name}: {', '.join(f'{counter} {count(number)}' for counter, number in bad.items())} (normal: none).",
        who=f"Mostly {main}: {_PORT_CAUSES[main]}.",
        next="compare with the other ports of the job; the fabric's own counters tell which link",
        anchor="devices",
        value=float(sum(bad.values())),
        threshold=0.0,
        unit="1",
        values={"device": name, **bad},
    )
