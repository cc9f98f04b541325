"""Microaggregation: groups of at least k similar records, each released as what its group has in common.

Names that mean the same in all modules: `points` has a row for each record, in columns of the same scale; `group` is
the group of each record, from 0; `people` is the person of each record (`common.people.number_people`; None: every
record is another person); `k` is the smallest number of people in a group.
"""
