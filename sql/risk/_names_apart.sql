-- anon._names_apart: true for a table none of whose columns is called like one that a measure adds to them, or like the
-- steps of ours; an error otherwise, since nobody could tell the two apart.
--     added  the names of the measure's own columns
CREATE OR REPLACE MACRO anon._names_apart(caller, tbl, added) AS TABLE
SELECT bool_and(CASE WHEN list_contains(added, lower(column_name)) OR starts_with(lower(column_name), '_duckanon_')
                          THEN error(caller || ': the table must not have a column that is called like one of the '
                                     || 'measure''s own; got ' || column_name || ', which must be renamed first.')
                     ELSE true END) AS are_apart
FROM anon._columns(tbl);
