-- anon._column_counts: the values of one column, each once, with the number of rows that have it; NULL is one of them.
--     value   as text
--     number  its place on the number line, for numbers and dates (microseconds since 1970, in the time zone of the
--             session)
CREATE OR REPLACE MACRO anon._column_counts(tbl, place, column_name) AS TABLE
SELECT place AS place, kind, value, anon._number_of(value, kind) AS number, size
FROM (SELECT anon._kind(typeof(raw)) AS kind, CAST(raw AS VARCHAR) AS value, size
      FROM (SELECT COLUMNS([column_name]) AS raw, count(*) AS size FROM query_table(tbl) GROUP BY ALL));
