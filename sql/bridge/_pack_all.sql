-- anon._pack_all: like anon._pack, with all columns of the table, of which `cols` are asked to be there.
-- needs: python
CREATE OR REPLACE MACRO anon._pack_all(caller, tbl, cols) AS (
    WITH _duckanon_call AS MATERIALIZED (
        FROM anon._call()
    )
    SELECT list(ticket) FILTER (ticket IS NOT NULL)
    FROM (SELECT _anon_park(record, call) AS ticket
          FROM (SELECT struct_pack(*COLUMNS(*)) AS record FROM query_table(anon._checked(caller, tbl, cols))), _duckanon_call));
