-- anon._unpack_means: the lists that anon.microaggregate got back from Python, turned into rows: `cols`, and those to
-- keep in the types of anon._release_shape. The two empty sides of the join bring the names and types of both.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_means(result, tbl, cols, keep, person) AS TABLE
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_means.*)), COLUMNS(_duckanon_means.*))),
             unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_others.*)),
                               COLUMNS(_duckanon_others.*)))
      FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
           LEFT JOIN anon._mean_shape(tbl, cols) AS _duckanon_means ON true
           LEFT JOIN (SELECT COLUMNS(lambda column_name: anon._is_kept(column_name, cols, keep, person))
                      FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM anon._release_shape(tbl, '')) LIMIT 0)
                  AS _duckanon_others ON true);
