"""``make bench``: what foreshock costs, measured on this machine and written to docs/benchmarks.md."""
