"""Microaggregation: groups of at least k similar records, each released as what its group has in common.

What the modules call by the same names: `points` has one row per record, in columns of the same scale; `group` is the
group of each record, numbered from 0; `people` is whose each record is (`common.people.person_numbers`; None: every
record is another person); `k` is the smallest group allowed, in records, or in people where they are told apart.
"""
