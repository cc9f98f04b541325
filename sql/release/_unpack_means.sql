-- anon._unpack_means: the lists that anon.microaggregate got back from Python, turned into rows: `cols`, numbers as
-- DOUBLE and times in their own types, and the columns to keep. The two empty sides of the join bring the names and
-- types of both. As in anon._release_shape a type is known when the query is bound.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_means(result, tbl, cols, kept) AS TABLE
WITH _duckanon_shape AS (
    SELECT struct_extract({'as_number': NULL::DOUBLE, 'as_it_is': COLUMNS(cols)},
                          CASE WHEN regexp_matches(anon._type_of(COLUMNS(cols)), '^(DATE|TIMESTAMP)') THEN 'as_it_is'
                               ELSE 'as_number' END)
    FROM query_table(tbl) LIMIT 0
)
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_means.*)), COLUMNS(_duckanon_means.*))),
             unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_others.*)),
                               COLUMNS(_duckanon_others.*)))
      FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
           LEFT JOIN _duckanon_shape AS _duckanon_means ON true
           LEFT JOIN (FROM query_table(kept) LIMIT 0) AS _duckanon_others ON true);
