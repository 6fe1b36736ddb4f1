"""foreshock: an eBPF node tracer that feels the tremor before the quake."""

__version__ = "0.1.0"
