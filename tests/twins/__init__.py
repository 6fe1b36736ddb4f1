"""Twins: real recordings of one machine under many names, faults injected into some, and what compare says of them."""
