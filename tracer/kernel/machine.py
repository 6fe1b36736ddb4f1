"""Which machine this is, whatever it is called and however often it boots."""

from __future__ import annotations

from hashlib import blake2b

from tracer.kernel.textfiles import text

__all__ = ["machine_id"]

#: An image that was copied has its machine-id on every copy; the firmware's differs. Only root may read that one.
_SOURCES = ("/etc/machine-id", "/sys/class/dmi/id/product_uuid")


def machine_id() -> str:
    """Return 16 hexadecimal digits made of the ids there are; "" if there are none.

    A digest, since machine-id(5) asks not to show the id itself to a network.
    """
    ids = [found for path in _SOURCES if (found := (text(path) or "").strip())]
    return blake2b("\0".join(("foreshock", *ids)).encode(), digest_size=8).hexdigest() if ids else ""
