"""A table of mixed columns as a matrix of numbers, and back."""
