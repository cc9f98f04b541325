-- anon._pack: the chosen columns of a table as one value that a Python function can take. The rows are collected in
-- Python block by block while the table is scanned; what travels through the query is the number of this call.
--     seed: where one is given the rows are put into an order that depends on their values alone (by their hash), since
--     a parallel scan delivers them in any order and a seed promises the same release each time.
-- needs: python
CREATE OR REPLACE MACRO anon._pack(caller, tbl, cols, seed) AS (
    WITH _duckanon_call AS MATERIALIZED (
        FROM anon._call()
    )
    SELECT list(ticket) FILTER (ticket IS NOT NULL)
    FROM (SELECT CASE WHEN seed IS NULL THEN _anon_park(record, call) ELSE _anon_park(record, call, hash(record)) END AS ticket
          FROM (SELECT struct_pack(*COLUMNS(cols)) AS record FROM query_table(anon._checked(caller, tbl, cols))),
               _duckanon_call));
