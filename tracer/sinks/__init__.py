"""Where alerts go. A slow or dead sink delays neither another nor the watch."""

from tracer.sinks.courier import Courier
from tracer.sinks.opening import open_sink
from tracer.sinks.sink import DirectSink, Refused, Repeating, Sink

__all__ = ["Courier", "DirectSink", "Refused", "Repeating", "Sink", "open_sink"]
