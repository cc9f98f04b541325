"""Microaggregation: groups of at least k similar records, each released as what its group has in common."""
