"""A recording for other viewers: stacks as folded, speedscope or pprof, every table as JSON or CSV.

Windows in, bytes out. docs/reports.md says what each format holds, in which units.
"""
