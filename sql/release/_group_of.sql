-- anon._group_of: which of the groups the labels belong to: that of the same labels, else the one that has lost the
-- last label (it is NULL there), the last two, and so on; NULL where there is none of these.
CREATE OR REPLACE MACRO anon._group_of(labels, groups) AS
    list_filter(list_transform(range(1 + len(labels)),
                               lambda lost: list_transform(range(1, 1 + len(labels)), lambda place:
                                                CASE WHEN place <= len(labels) - lost THEN labels[place] END)),
                lambda group_labels: list_contains(groups, group_labels))[1];
