"""Boxes: intervals that at least k records share, shaped for chosen statistics.

What the modules call by the same names: `k` is the smallest number of records in a box, or of people where `people`
says whose each record is (`common.people.person_numbers`; None: every record is another person); each column of a box
has at least `l` values that are at least its `epsilon` apart; `strata` is the stratum of each record, from 0, and no
box holds records of two (None: there is one); `rules` is what a box must hold, `points` the records, `nodes` the nodes
of the tree that cuts them, `statistics` what the boxes should serve (None: the means of all columns).
"""
