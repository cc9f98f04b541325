"""Generalize: coarser values that make a table k-anonymous, written down as plans."""
