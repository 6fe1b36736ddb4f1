"""Addresses to functions: the kernel's own, and those of processes. Nothing here runs while the kernel waits."""
