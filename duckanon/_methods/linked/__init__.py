"""Linked tables: rows of people with a history, in which k people hold every choice of at most m rows of a person.

Names that mean the same in all modules: `rows` are those of one class of people; `items` are the numbers of the labels
that rows show, from 1; a `ladder` has such numbers for several levels, the finest first; `known` is how many rows of
each table somebody may know.
"""
