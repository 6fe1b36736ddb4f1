"""Receive the alerts and windows of many nodes, and notice those that fall silent.

Exit codes: 0 stopped by a signal, 2 what is asked for can't be (an address beyond loopback without a token),
3 the address can't be listened on, 5 standard output is closed.
"""

from __future__ import annotations

import click

from tracer.commands._options import DURATION
from tracer.errors import UsageError

GROUP = "Run always"
ORDER = 3

_DEFAULT_NODES = 1024
_MEBIBYTE = 1 << 20


@click.group()
def fleet() -> None:
    """Watch many nodes from one host that is none of them."""


@fleet.command()
@click.option("--listen", default="127.0.0.1:9750", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--token-file", metavar="FILE", help="Senders must know the token in it. Needed beyond loopback.")
@click.option("--insecure", is_flag=True, help="Listen beyond loopback without a token: anybody can then page you.")
@click.option("--tls-cert", metavar="FILE", help="Certificate (PEM): only TLS is accepted then.")
@click.option("--tls-key", metavar="FILE", help="Its key, unless it is in the same file.")
@click.option("--tls-ca", metavar="FILE", help="Senders must have a certificate of this CA.")
@click.option("--keep", type=DURATION, default="5m", show_default=True, help="How much of each node to keep.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 65536),
    default=_DEFAULT_NODES,
    show_default=True,
    metavar="N",
    help="The most nodes to take.",
)
@click.option(
    "--memory", type=click.IntRange(1), default=256, show_default=True, metavar="MIB", help="For what is kept, in MiB."
)
@click.option("--json", "as_json", is_flag=True, help="Alerts as JSON lines, those of rules on trial, too.")
def serve(
    listen: str,
    token_file: str | None,
    insecure: bool,
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    keep: int,
    nodes: int,
    memory: int,
    as_json: bool,
) -> None:
    """Receive alerts and windows, print the alerts, and report nodes that fall silent.

    A node that is silent for three of its intervals, at least 3 seconds, without having said goodbye, is reported
    with what it said last; and again when it speaks. Ends, with a line of totals, on SIGTERM, SIGINT and SIGHUP.

    \b
    foreshock fleet serve                                                     this host's own agent
    foreshock fleet serve --listen 0.0.0.0:9750 --token-file /etc/foreshock/token
    on each node: foreshock agent --stream HOST:9750 --token-file /etc/foreshock/token
    """
    from tracer.fleet.receiver import CONNECTIONS_PER_NODE, Limits, Receiver
    from tracer.fleet.serving import addresses_of, most_connections
    from tracer.fleet.serving import serve as serve_until_stopped
    from tracer.fleet.tls import server_context
    from tracer.sinks import Courier, open_sink
    from tracer.sinks.opening import host_and_port
    from tracer.sinks.report import to_stderr
    from tracer.sinks.token import read_token

    host, port = host_and_port(listen, lowest_port=0)
    token = read_token(token_file) if token_file else None
    if token and insecure:
        raise UsageError("--insecure and --token-file contradict each other.", hint="leave out --insecure")
    tls = server_context(tls_cert, tls_key, tls_ca)
    addresses = addresses_of(host, open_to_all=token is not None or insecure)
    limits = Limits(nodes, keep, memory * _MEBIBYTE, most_connections(nodes * CONNECTIONS_PER_NODE))
    courier = Courier(open_sink("json:-" if as_json else "terminal"))
    receiver = Receiver(limits, token, tls, courier.send, to_stderr)
    to_stderr(str(limits))
    try:
        serve_until_stopped(receiver, addresses, port, to_stderr)
    finally:
        courier.close()
    lost = courier.dropped + courier.failed
    to_stderr(receiver.totals + (f", {lost} of them not written" if lost else ""))
