"""Many nodes beside each other: which one deviates, since when, in what, and what differs there.

``reading`` is the only module here that opens recordings; everything after it are functions of numpy arrays.
"""
