"""The always-on process and its sentinels."""
