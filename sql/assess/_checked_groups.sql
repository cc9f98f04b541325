-- anon._checked_groups: the name of the table, after a look at what a check groups it by. A column that is called like
-- one that the steps of the checks add would be taken for it.
CREATE OR REPLACE MACRO anon._checked_groups(caller, tbl, cols, nulls) AS
    anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop'],
        anon._checked_apart(caller, cols, ['_duckanon_size', '_duckanon_rows', '_duckanon_anyone', '_duckanon_person',
                                           '_duckanon_value', '_duckanon_key', '_duckanon_total', '_duckanon_largest',
                                           '_duckanon_distinct', '_duckanon_logs', '_duckanon_sizes', '_duckanon_l'],
                            anon._checked(caller, tbl, cols)));
