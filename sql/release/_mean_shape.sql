-- anon._mean_shape: the chosen columns of a table without rows, in the types that means of them have: dates and moments
-- their own, everything else DOUBLE. As in anon._release_shape the type is known when the query is bound.
CREATE OR REPLACE MACRO anon._mean_shape(tbl, chosen) AS TABLE
SELECT struct_extract({'as_number': NULL::DOUBLE, 'as_it_is': COLUMNS(chosen)},
                      CASE WHEN regexp_matches(typeof(COLUMNS(chosen)), '^(DATE|TIMESTAMP)') THEN 'as_it_is'
                           ELSE 'as_number' END)
FROM query_table(tbl) LIMIT 0;
