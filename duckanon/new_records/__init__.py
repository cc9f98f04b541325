"""Releases of new records with the same statistics, and the methods to compare them with."""
