"""Many nodes beside each other: which one deviates, since when, in what, and what differs there.

Only ``reading`` and ``details`` open recordings; everything after them are functions of numpy arrays.
"""
