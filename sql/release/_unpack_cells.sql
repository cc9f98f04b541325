-- anon._unpack_cells: the lists that anon.suppress_cells got back from Python, turned into rows: `cols` and the columns
-- to keep, in the types of anon._release_shape. The empty side of the join brings the names and types.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_cells(result, tbl, cols, keep, person) AS TABLE
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_shape.*)), COLUMNS(_duckanon_shape.*)))
      FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
           LEFT JOIN (SELECT COLUMNS(lambda column_name: anon._is_among(column_name, cols)
                                                         OR anon._is_kept(column_name, cols, keep, person))
                      FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM anon._release_shape(tbl, '')) LIMIT 0)
                  AS _duckanon_shape ON true);
