"""Values in, text out: everything people and programs read."""
