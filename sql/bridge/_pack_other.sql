-- anon._pack_other: like anon._pack, for a second table that may be left out: NULL where `other` is NULL, an empty list
-- where the table has no rows.
--     tbl  a table with the same columns, which stands in for the missing one while the query is bound
-- needs: python
CREATE OR REPLACE MACRO anon._pack_other(caller, other, tbl, cols, seed) AS
    coalesce(anon._tickets(anon._checked(caller, coalesce(other, tbl), cols), cols, seed, other IS NOT NULL),
             CASE WHEN other IS NOT NULL THEN [] END);
