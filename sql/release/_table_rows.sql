-- anon._table_rows: the inner cells of an aggregate table, as Python takes them: with `person`, what each person
-- contributes to each; without, where every row is a person, what is known of all of them together.
--     most                how many of the largest contributions are returned
--     _duckanon_entries   rows that contribute
--     _duckanon_value     the sum of their contributions
--     _duckanon_absolute  the sum of the sizes of their contributions; NULL with `person`
--     _duckanon_largest_1 .. _duckanon_largest_5  the sizes of the largest contributions; NULL with `person`, and
--                         without `measure`: no rule of counts asks for them
CREATE OR REPLACE MACRO anon._table_rows(caller, tbl, cols, measure, person, most) AS TABLE
WITH _duckanon_counts AS (
    SELECT COLUMNS(cols), NULL::UBIGINT AS _duckanon_person, count(*) AS _duckanon_entries,
           count(*)::DOUBLE AS _duckanon_value, count(*)::DOUBLE AS _duckanon_absolute,
           NULL::DOUBLE[] AS _duckanon_sizes
    FROM anon._table_source(caller, tbl, cols, measure, person)
    GROUP BY ALL
), _duckanon_rows AS (
    SELECT COLUMNS(cols), NULL::UBIGINT AS _duckanon_person, count(_duckanon_value) AS _duckanon_entries,
           coalesce(fsum(_duckanon_value), 0) AS _duckanon_value, fsum(abs(_duckanon_value)) AS _duckanon_absolute,
           max(abs(_duckanon_value), most) AS _duckanon_sizes
    FROM anon._table_source(caller, tbl, cols, measure, person)
    GROUP BY ALL
), _duckanon_people AS (
    SELECT COLUMNS(cols), _duckanon_person, count(_duckanon_value) AS _duckanon_entries,
           coalesce(fsum(_duckanon_value), 0) AS _duckanon_value, NULL::DOUBLE AS _duckanon_absolute,
           NULL::DOUBLE[] AS _duckanon_sizes
    FROM anon._table_source(caller, tbl, cols, measure, person)
    GROUP BY ALL
)
SELECT * EXCLUDE (_duckanon_sizes), _duckanon_sizes[1] AS _duckanon_largest_1,
       _duckanon_sizes[2] AS _duckanon_largest_2, _duckanon_sizes[3] AS _duckanon_largest_3,
       _duckanon_sizes[4] AS _duckanon_largest_4, _duckanon_sizes[5] AS _duckanon_largest_5
FROM query_table(CASE WHEN person IS NOT NULL THEN '_duckanon_people' WHEN measure IS NULL THEN '_duckanon_counts'
                      ELSE '_duckanon_rows' END);
