"""The lab: Debian kernels that really panic, in QEMU, watched from the host. See docs/panic-lab.md."""
