"""Alerts: pure rules over windows, an engine that keeps their states, and the countdown to what the kernel does."""
