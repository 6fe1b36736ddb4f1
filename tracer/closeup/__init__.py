"""The close-up: an alert fires, the deep probes run for some seconds, and what they saw goes with the alert.

Everything that takes privileges, time or memory is done by processes of its own, see ``standby`` and ``worker``.
"""
