"""Local recoding: classes of at least k people, each with labels of its own that lose as little as can be.

The modules use some names alike: `columns` and `codes` are the columns and the code of each row in each; `groups` is
the group of each row, from 0, and no class holds rows of two groups (None: all rows are one group); `people` is the
number of each row's person, `NOBODY` where it is not known (None: each row is another person); `k` is the smallest
number of people in a class, `rounds` how often classes are improved, `diversity` the conditions on sensitive values.
"""
