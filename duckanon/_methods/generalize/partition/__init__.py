"""Partitions of one sorted column into buckets of at least k rows."""
