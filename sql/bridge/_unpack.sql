-- anon._unpack: the lists that a Python function returned as rows again, under the source's names and types. The empty
-- side of the join brings names and types; LIMIT keeps the call apart from its many uses, so that it runs exactly once.
-- The one name of our own that meets the source's columns is one that nobody else would choose.
-- A released column is a struct of lists, of which the one for its type is filled (duckanon.bridge.slot_of is the same
-- rule on Arrow types):
--     f  floats, and decimals that a double holds exactly      i  whole numbers that a BIGINT holds, booleans
--     d  dates      t  timestamps      z  timestamps with a time zone      s  everything else, as text
-- A type's name is known when the query is bound, so that the choice is made once per column and leaves no trace in the
-- plan: a CASE over the lists themselves would copy them.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack(result, tbl, cols) AS TABLE
SELECT unnest(
    CASE WHEN typeof(COLUMNS(cols)) IN ('DOUBLE', 'FLOAT')
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).f, [COLUMNS(cols)])
         WHEN typeof(COLUMNS(cols)) IN ('BIGINT', 'INTEGER', 'SMALLINT', 'TINYINT', 'UINTEGER', 'USMALLINT', 'UTINYINT', 'BOOLEAN')
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).i, [COLUMNS(cols)])
         WHEN typeof(COLUMNS(cols)) = 'DATE'
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).d, [COLUMNS(cols)])
         WHEN typeof(COLUMNS(cols)) = 'TIMESTAMP'
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).t, [COLUMNS(cols)])
         WHEN typeof(COLUMNS(cols)) = 'TIMESTAMP WITH TIME ZONE'
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).z, [COLUMNS(cols)])
         WHEN TRY_CAST(regexp_extract(typeof(COLUMNS(cols)), '^DECIMAL\((\d+)', 1) AS INTEGER) <= 15
              THEN cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).f, [COLUMNS(cols)])
         WHEN typeof(COLUMNS(cols)) = 'TIME WITH TIME ZONE'     -- Arrow has no such type: the zone is lost on the way
              THEN cast_to_type([anon._refuse('anon: a column of type TIME WITH TIME ZONE cannot be released; '
                                              || 'cast it to VARCHAR first.')], [COLUMNS(cols)])
         ELSE cast_to_type(anon._released(_py._duckanon_released, alias(COLUMNS(cols))).s, [COLUMNS(cols)]) END)
FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py LEFT JOIN (FROM query_table(tbl) LIMIT 0) ON true;
