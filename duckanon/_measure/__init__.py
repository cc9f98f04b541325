"""Measure: what an attacker learns from a release, and what an analyst loses."""
