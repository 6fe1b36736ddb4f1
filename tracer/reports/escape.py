"""Make names from a node safe to print: the vocabulary's ``tracer.escape``, by the name that reports know it."""

from tracer.escape import printable

__all__ = ["printable"]
