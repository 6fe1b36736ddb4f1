"""``foreshock compare --by``: what one cohort of nodes is slower in than another, how sure that is, and what it costs.

A node is one number per series: what is measured twice on a node is not twice as sure. Pure: it reads no file.
"""
