-- anon._pack_other: like anon._pack, for a second table that may be left out: where `other` is NULL no row is collected,
-- and the value is NULL; a table without rows gives an empty list.
--     tbl  a table with the same columns, which stands in for the one that is left out while the query is bound
-- needs: python
CREATE OR REPLACE MACRO anon._pack_other(caller, other, tbl, cols, seed) AS (
    WITH _duckanon_call AS MATERIALIZED (
        FROM anon._call()
    )
    SELECT coalesce(list(ticket) FILTER (ticket IS NOT NULL), CASE WHEN other IS NOT NULL THEN [] END)
    FROM (SELECT CASE WHEN seed IS NULL THEN _anon_park(record, call) ELSE _anon_park(record, call, hash(record)) END AS ticket
          FROM (SELECT struct_pack(*COLUMNS(cols)) AS record FROM query_table(anon._checked(caller, coalesce(other, tbl), cols))
                WHERE other IS NOT NULL),
               _duckanon_call));
