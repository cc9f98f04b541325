-- anon._unpack: the lists that a Python function returned as rows again, under the source's names and types. The empty
-- side of the join brings names and types; LIMIT keeps the call apart from its many uses, so that it runs exactly once.
-- The one name of our own that meets the source's columns is one that nobody else would choose.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack(result, tbl, cols) AS TABLE
SELECT unnest(CASE anon._slot(typeof(COLUMNS(cols)))
                  WHEN 'i' THEN cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].i, [COLUMNS(cols)])
                  WHEN 'f' THEN cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].f, [COLUMNS(cols)])
                  WHEN 'd' THEN cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].d, [COLUMNS(cols)])
                  WHEN 't' THEN cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].t, [COLUMNS(cols)])
                  WHEN 'z' THEN cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].z, [COLUMNS(cols)])
                  ELSE cast_to_type(_py._duckanon_released.columns[list_position(_py._duckanon_released.names, alias(COLUMNS(cols)))].s, [COLUMNS(cols)]) END)
FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py LEFT JOIN (FROM query_table(tbl) LIMIT 0) ON true;
