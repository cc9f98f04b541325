"""Boxes: intervals that at least k records share, shaped for chosen statistics.

Names that mean the same in all modules: `k` is the smallest number of people in a box; `people` is the person of each
record (`common.people.number_people`; None: every record is another person); each column of a box has at least `l`
values that are at least its `epsilon` apart; `strata` is the stratum of each record, from 0, and no box has records of
two (None: there is one); `rules` are the conditions on a box, `points` the records, `nodes` the nodes of the tree that
cuts them, `statistics` what the boxes should serve (None: the means of all columns).
"""
