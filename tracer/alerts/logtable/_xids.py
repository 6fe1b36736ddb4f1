"""Xid and SXid: the codes by which NVIDIA's drivers tell errors of GPUs and of NVLink switches.

Source: NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors) and nverror.h of the open kernel modules.
"""

from __future__ import annotations

from tracer.alerts.alert import Severity

__all__ = ["sxid", "xid"]

_INFO, _WARNING, _PAGE = Severity.INFO, Severity.WARNING, Severity.PAGE

_APP = "mostly an error of the program: restart it; look further if it comes with several programs"
_RESET = "drain the node and reset the GPU"
_RMA = "drain the node, reset the GPU; if it comes again, have it replaced"

#: Code → how bad, what it means, what to do.
_XIDS: dict[int, tuple[Severity, str, str]] = {
    8: (_WARNING, "the GPU stopped processing", "restart the program"),
    11: (_INFO, "invalid or corrupted push buffer", _APP),
    13: (_INFO, "graphics engine exception", _APP),
    31: (_INFO, "memory page fault of a program on the GPU", _APP),
    32: (_WARNING, "invalid or corrupted push buffer stream", "restart the program; check PCIe errors"),
    38: (_WARNING, "driver firmware error", "restart the program; update the driver if it comes again"),
    43: (_INFO, "the GPU stopped a program", _APP),
    44: (_WARNING, "graphics engine fault at a context switch", "restart the program"),
    45: (_INFO, "a program's channels were removed", "look for the Xid before this one"),
    48: (_PAGE, "double-bit ECC error: memory was corrupted", _RMA),
    59: (_WARNING, "error of the power management unit", _RESET),
    61: (_WARNING, "breakpoint of the power management unit", _RESET),
    62: (_PAGE, "the power management unit halted", _RESET),
    63: (_WARNING, "a memory row or page was retired", "reset the GPU between two jobs, so that it takes effect"),
    64: (_PAGE, "a memory row or page could not be retired", _RMA),
    68: (_INFO, "video decoder exception", _APP),
    69: (_INFO, "graphics engine class error", _APP),
    74: (_PAGE, "NVLink error", "drain the node, check the link's other end; reset both GPUs"),
    78: (_WARNING, "a virtual GPU could not be started", "check the host's vGPU set-up"),
    79: (
        _PAGE,
        "the GPU has fallen off the bus",
        "drain the node and power-cycle it; check power, seating, PCIe errors",
    ),
    92: (_WARNING, "many single-bit ECC errors", "run the field diagnostic between two jobs"),
    93: (_WARNING, "erase limit of the InfoROM exceeded", "have the GPU checked"),
    94: (_WARNING, "contained memory error: the program that used it ends", "restart it; reset the GPU when idle"),
    95: (_PAGE, "uncontained memory error: all programs on the GPU are affected", _RESET),
    109: (_WARNING, "context switch timed out", "restart the program; reset the GPU if it comes again"),
    119: (_PAGE, "the GPU system processor did not answer", "drain the node, reset the GPU or power-cycle the node"),
    120: (_PAGE, "error of the GPU system processor", "drain the node, reset the GPU or power-cycle the node"),
    121: (_WARNING, "corrected error of the link to the CPU (C2C)", "watch the rate; reset the GPU when idle"),
    122: (_WARNING, "the SPI flash could not be read", "have the GPU checked"),
    123: (_WARNING, "the SPI flash could not be written", "have the GPU checked"),
    124: (_WARNING, "the SPI flash could not be erased", "have the GPU checked"),
    125: (_WARNING, "error of the InfoROM's file system", "have the GPU checked"),
    137: (_WARNING, "NVLink access was refused", "mostly another GPU's program: look for Xids of its peers"),
    140: (_PAGE, "unrecovered ECC error", _RMA),
    143: (_PAGE, "the GPU could not be initialised", _RMA),
    **dict.fromkeys(range(144, 151), (_WARNING, "NVLink error", "look at the link and its other end; reset the GPU")),
    154: (_WARNING, "the GPU needs a recovery action now", "do what the line names, after draining the node"),
}


def xid(code: int) -> tuple[Severity, str, str]:
    """Return how bad a GPU's Xid is, what it means and what to do; one that isn't known is a warning."""
    return _XIDS.get(code, (_WARNING, "an error that this version has no words for", "look the code up at NVIDIA"))


def sxid(fatal: bool) -> tuple[Severity, str]:
    """Return how bad an error of an NVLink switch is, and what to do: the line itself says what and whether fatal."""
    if fatal:
        return _PAGE, "jobs that use this switch end: drain the node, reset GPUs and switches"
    return _WARNING, "watch whether it comes again on the same link"
