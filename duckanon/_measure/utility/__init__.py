"""Utility of a release: statistics, distributions, models."""
