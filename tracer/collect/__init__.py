"""One window per table and interval, out of the live maps, the events and the polled sources."""
