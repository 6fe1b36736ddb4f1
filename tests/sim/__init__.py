"""A simulator of clusters: real windows, resampled, with faults that are known. ``make bench-detect``."""
