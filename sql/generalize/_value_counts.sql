-- anon._value_counts: the values of several columns of any types, each once per column, with the number of rows that
-- have it: a GROUP BY for each column, put together for query(), which is many times faster than turning rows into
-- cells.
--     place  of the column in cols
CREATE OR REPLACE MACRO anon._value_counts(tbl, cols) AS TABLE
FROM query(anon._joined(
    list_transform(cols, lambda name, place:
        'FROM anon._column_counts(' || anon._quoted(tbl) || ', ' || place || ', ' || anon._quoted(name) || ')'),
    ' UNION ALL '));
