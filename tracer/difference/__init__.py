"""Two recordings, or two parts of one: what changed beyond the noise of their own windows, and who did it.

Only ``reading`` opens recordings; everything after it are functions of what it kept.
"""
