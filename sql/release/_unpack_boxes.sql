-- anon._unpack_boxes: the lists that anon.boxes got back from Python as rows: the number of the box, the intervals of
-- `cols`, and all other columns under their names and types. The two empty sides of the join bring the names and types
-- of both.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_boxes(result, tbl, cols) AS TABLE
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT unnest(anon._released(_py._duckanon_released, '_duckanon_box').i) AS box,
             struct_pack(lo := unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_b.*)), COLUMNS(_b.*))),
                         hi := unnest(anon._slot(_py._duckanon_released, '_duckanon_hi ' || alias(COLUMNS(_b.*)), COLUMNS(_b.*)))),
             unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_o.*)), COLUMNS(_o.*)))
      FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
           LEFT JOIN (SELECT COLUMNS(cols) FROM query_table(tbl) LIMIT 0) AS _b ON true
           LEFT JOIN (SELECT COLUMNS(lambda c: anon._is_other(c, cols))
                      FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM query_table(tbl)) LIMIT 0) AS _o ON true);
