-- anon._value_counts: the values of several columns of any types, each once per column, with the number of rows that
-- have it: a GROUP BY for each column, put together for query(), which is many times faster than turning rows into
-- cells.
--     place  of the column in cols
CREATE OR REPLACE MACRO anon._value_counts(tbl, cols) AS TABLE
FROM query(anon._joined(
    list_transform(range(1, 1 + len(cols)), lambda place:
        'FROM anon._column_counts(' || anon._quoted(tbl) || ', ' || place || ', ' || anon._quoted(cols[place]) || ')'),
    ' UNION ALL '));
