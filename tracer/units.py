"""What times are counted in, and how numbers, times and columns look: the one copy of every format people read.

Durations come in as nanoseconds, sizes as bytes, shares as fractions. What was not measured (NaN) is
``–``, never 0; what lies above the last histogram edge (inf) is ``> 128 s``.
"""

from __future__ import annotations

import math
import unicodedata
from datetime import datetime, timezone

__all__ = [
    "MISSING",
    "SECOND",
    "at_most",
    "change",
    "clip",
    "count",
    "display_width",
    "duration",
    "link_speed",
    "many",
    "memory",
    "moment",
    "pad",
    "percent",
    "rate",
    "relative",
    "throughput",
    "times",
]

#: Times are whole nanoseconds: so many make a second.
SECOND = 1_000_000_000
MISSING = "–"
# Narrow no-break space: groups digits without looking like two fields, and no line break inside a number.
_GROUP = "\u202f"
_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86400.0
_GREATEST_FACTOR = 999  # beyond it's only said that it is greater
_FIRST_UNKNOWN_NS = 128e9  # the last histogram edge, 2**7 s


def duration(ns: float) -> str:
    """Format nanoseconds with three significant digits: ``845 ns``, ``1.2 ms``, ``949 ms``, ``2 min 05 s``."""
    if math.isnan(ns):
        return MISSING
    if math.isinf(ns):
        return f"> {duration(_FIRST_UNKNOWN_NS)}"
    if ns < 0:
        return f"-{duration(-ns)}"
    for limit, scale, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms"), (128.5e9, SECOND, "s")):
        # Compare what will be printed: 999.6 µs rounds to 1 ms, not to 1e+03 µs.
        if _round3(ns) < limit:
            return f"{_digits(ns / scale)} {unit}"
    return _long(ns / SECOND)


def _long(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE):02d} s"
    minutes = seconds // _MINUTE
    if seconds < 2 * _DAY:
        return f"{int(minutes // 60)} h {int(minutes % 60):02d} min"
    hours = seconds // _HOUR
    return f"{int(hours // 24)} d {int(hours % 24)} h"


def at_most(ns: float) -> str:
    """Format a maximum known only as a bucket's upper edge: ``≤ 8.39 ms``."""
    return duration(ns) if math.isnan(ns) or math.isinf(ns) else f"≤ {duration(ns)}"


def count(number: float) -> str:
    """Format a whole number, grouped: ``12 345``."""
    return MISSING if math.isnan(number) else f"{int(number):,}".replace(",", _GROUP)


def many(number: int, what: str) -> str:
    """Format a count with what is counted: ``1 interval``, ``20 intervals``."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def percent(fraction: float) -> str:
    """Format a share: ``93 %``, ``0.4 %``. Only all of it is 100 %, only none of it 0 %."""
    if math.isnan(fraction):
        return MISSING
    value = fraction * 100
    if 0 < value < 0.01:
        return "<0.01 %"
    if 99 < value < 100:
        return f"{math.floor(value * 10) / 10:g} %"
    return f"{value:.0f} %" if value >= 10 else f"{_round2(value):g} %"


def times(ratio: float, *, divided: float = 0.5) -> str:
    """Format a ratio: ``×3.2``, ``×0.8``; ``divided``, or less, by what it was divided by: ``÷28``."""
    if math.isnan(ratio):
        return MISSING
    sign, factor = ("×", ratio) if ratio > divided else ("÷", 1 / ratio if ratio > 0 else math.inf)
    return sign + (_digits(factor) if _round3(factor) <= _GREATEST_FACTOR else f">{_GREATEST_FACTOR}")


def relative(ratio: float, *, beside: float | None = None) -> str:
    """Format by how much more or less something is: ``+12 %``, ``−33 %``, ``×3``, ``÷28``; ``=`` if that rounds away.

    One ``beside`` another ratio is told as that one is, as a factor or not.
    """
    shown = ratio if beside is None else beside
    if not 0.5 < shown < 2:
        return times(ratio, divided=1.0 if shown < 1 and ratio < 1 else 0.5)
    more = abs(ratio - 1) * 100
    digits = f"{more:.0f}" if more >= 10 else f"{round(more, 1):g}"
    return f"{'+' if ratio > 1 else '−'}{digits} %" if digits != "0" else "="


def change(before: float, now: float) -> str:
    """Format what became of a number: ``relative``, or ``new``, ``gone``, ``=``."""
    if math.isnan(before) or math.isnan(now):
        return MISSING
    if before == now:
        return "="
    if not before or not now:
        return "gone" if before else "new"
    return relative(now / before)


def rate(per_second: float) -> str:
    """Format events per second: ``949/s``, ``12.3 k/s``."""
    return MISSING if math.isnan(per_second) else _scaled(per_second, 1000.0, ("/s", " k/s", " M/s", " G/s"))


def throughput(bytes_per_second: float) -> str:
    """Format a data rate in decimal units, as link speeds are: ``1.25 GB/s``."""
    if math.isnan(bytes_per_second):
        return MISSING
    return _scaled(bytes_per_second, 1000.0, (" B/s", " kB/s", " MB/s", " GB/s", " TB/s"))


def memory(size: float) -> str:
    """Format bytes in binary units: ``33.1 MiB``."""
    return MISSING if math.isnan(size) else _scaled(size, 1024.0, (" B", " KiB", " MiB", " GiB", " TiB"))


def link_speed(mbps: float) -> str:
    """Format a link's speed given in Mb/s: ``100 Gb/s``; unknown speeds (0, -1) are ``–``."""
    if math.isnan(mbps) or mbps <= 0:
        return MISSING
    return _scaled(mbps * 1e6, 1000.0, (" b/s", " kb/s", " Mb/s", " Gb/s", " Tb/s"))


def moment(unix_ns: float, *, date: bool = True) -> str:
    """Format a wall-clock time, always UTC and always saying so: ``2026-11-30 02:11:05 UTC``."""
    if math.isnan(unix_ns):
        return MISSING
    try:
        when = datetime.fromtimestamp(unix_ns / SECOND, tz=timezone.utc)
    except (OverflowError, OSError, ValueError):
        return MISSING
    return when.strftime("%Y-%m-%d %H:%M:%S UTC" if date else "%H:%M:%S UTC")


def display_width(text: str) -> int:
    """Return how many terminal cells ``text`` takes: 2 for wide characters, 0 for combining ones.

    Characters of ambiguous width count as 1, as every terminal outside a CJK locale draws them (UAX #11).
    """
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def clip(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` cells, ending in ``…`` where something is missing."""
    if display_width(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, used = [], 0
    for character in text:
        used += _cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill ``text`` with spaces up to ``width`` cells; ``right`` aligns it to the right. Never cuts."""
    fill = " " * max(0, width - display_width(text))
    return fill + text if right else text + fill


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _scaled(value: float, base: float, units: tuple[str, ...]) -> str:
    scale = 0
    while scale < len(units) - 1 and _round3(abs(value)) >= base:
        value /= base
        scale += 1
    return _digits(value) + units[scale]


def _digits(value: float) -> str:
    """Three significant digits without an exponent; 0 only for 0."""
    return "<0.01" if 0 < value < 0.01 else f"{_round3(value):.10g}"


def _round3(value: float) -> float:
    return float(f"{value:.3g}")


def _round2(value: float) -> float:
    return float(f"{value:.2g}")
