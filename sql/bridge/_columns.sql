-- anon._columns: the columns of a table, a view or a CTE, one row each in the table's order, without reading it. The
-- empty side of the join brings the names and types, the other side the one row that they are read off.
CREATE OR REPLACE MACRO anon._columns(tbl) AS TABLE
SELECT unnest(range(1, 1 + len(_names))) AS place, unnest(_names) AS column_name, unnest(_types) AS column_type
FROM (SELECT [UNPACK(alias(COLUMNS(_duckanon_source.*)))] AS _names,
             [UNPACK(typeof(COLUMNS(_duckanon_source.*)))] AS _types
      FROM (SELECT 1) LEFT JOIN (FROM query_table(tbl) LIMIT 0) AS _duckanon_source ON true);
