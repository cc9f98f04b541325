-- anon._pack: the chosen columns of a table as one value that a Python function can take. The rows are parked in Python
-- block by block while the table is scanned; what travels through the query is one ticket a block.
--     seed: where one is given the rows are put into an order that depends on their values alone (by their hash), since
--     a parallel scan delivers them in any order and a seed promises the same release each time.
-- needs: python
CREATE OR REPLACE MACRO anon._pack(caller, tbl, cols, seed) AS (
    SELECT list(ticket) FILTER (ticket IS NOT NULL)
    FROM (SELECT _anon_park(record, CASE WHEN seed IS NOT NULL THEN hash(record) END, anon._owner()) AS ticket
          FROM (SELECT struct_pack(*COLUMNS(cols)) AS record FROM query_table(anon._checked(caller, tbl, cols)))));
