"""Tables that need more than the difference of mapped arrays: one module each, named by ``Probe.reader``.

``Reader(session, probe)`` has ``read(now_ns) -> {table: (rows, losses)}`` and ``close()``.
"""
