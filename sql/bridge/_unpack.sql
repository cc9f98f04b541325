-- anon._unpack: the lists that a Python function returned, turned into rows under the source's names, in the types of
-- anon._release_shape. The empty side of the join brings names and types; LIMIT keeps the call apart from its many
-- uses, so that it runs exactly once. The only name of ours that meets the source's columns is one that nobody else
-- would choose.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack(result, tbl, cols) AS TABLE
SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_shape.*)), COLUMNS(_duckanon_shape.*)))
FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
     LEFT JOIN anon._release_shape(tbl, cols) AS _duckanon_shape ON true;
