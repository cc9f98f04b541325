"""Aggregate tables: counts and sums with margins, protected by suppression, rounding or noise, and audited."""
