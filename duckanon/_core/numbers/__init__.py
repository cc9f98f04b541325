"""Columns of numbers and dates: their units, the parts that k people share, and ends in the column's own type."""
