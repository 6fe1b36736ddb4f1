"""Sources: what is polled once per interval instead of counted by a program of ours. One module per probe."""
