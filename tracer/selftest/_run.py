"""Run every probe's checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracer.errors import UnavailableError
from tracer.probes import all_probes
from tracer.selftest import Check, Evidence, all_checks
from tracer.selftest._scenes import gather

__all__ = ["run"]


def run(say: Callable[[str], None]) -> list[tuple[str, Check]]:
    """Return the checks of every probe with its name; takes about 10 s, tells ``say`` what goes on."""
    try:
        evidence = gather(say)
    except UnavailableError as error:
        return [(name, Check.skip(error.message)) for name in all_probes()]
    return [(name, check) for name in all_probes() for check in _checks(name, evidence)]


def _checks(name: str, evidence: Evidence) -> Iterator[Check]:
    checks = all_checks().get(name)
    if name in evidence.refused:
        yield Check.skip(evidence.refused[name])
    elif name not in evidence.probes:
        yield Check.skip("what it requires can't run here")
    elif checks is None:
        yield Check.skip("has no selftest")
    else:
        yield from checks(evidence)
