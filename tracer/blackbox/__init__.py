"""The flight recorder on disk, and what it tells after the node has died."""
