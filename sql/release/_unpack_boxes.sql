-- anon._unpack_boxes: the lists that anon.boxes got back from Python, turned into rows: the number of the box, the
-- intervals of `cols`, and the columns to keep, in the types of anon._release_shape. The two empty sides of the join
-- bring the names and types of both.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_boxes(result, tbl, cols, kept) AS TABLE
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT unnest(anon._released(_py._duckanon_released, '_duckanon_box').i) AS box,
             struct_pack(lo := unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_boxed.*)),
                                                 COLUMNS(_duckanon_boxed.*))),
                         hi := unnest(anon._slot(_py._duckanon_released,
                                                 '_duckanon_hi ' || alias(COLUMNS(_duckanon_boxed.*)),
                                                 COLUMNS(_duckanon_boxed.*)))),
             unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_others.*)),
                               COLUMNS(_duckanon_others.*)))
      FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
           LEFT JOIN anon._release_shape(tbl, cols) AS _duckanon_boxed ON true
           LEFT JOIN (FROM query_table(kept) LIMIT 0) AS _duckanon_others ON true);
