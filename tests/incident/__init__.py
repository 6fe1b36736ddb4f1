"""An incident made on purpose, in network namespaces of its own: softirqs that wait behind a reader of a small file."""
