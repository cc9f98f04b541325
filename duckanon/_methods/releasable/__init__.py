"""Releasable values of a column, and numbers drawn from them."""
