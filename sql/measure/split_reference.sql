-- anon.split_reference: a table's rows with a column `is_reference`, true for a random part of them: the people to
-- compare a release of the others with. Exactly the share of the rows that is asked for is drawn.
--     fraction  the share of the rows that become the reference
--     seed      NULL draws anew each time; a number repeats the split, whatever order the rows are stored in
-- Each of several equal rows is drawn on its own. A column `is_reference` that the table has already is replaced.
-- test: tests/measure/split_reference.test
CREATE OR REPLACE MACRO anon.split_reference(tbl, fraction := 0.5, seed := NULL) AS TABLE
SELECT unnest(kept), row_number() OVER (ORDER BY draw ASC NULLS LAST)
                         <= round(CAST(fraction AS DOUBLE) * count(*) OVER ()) AS is_reference
FROM (SELECT kept, CASE WHEN seed IS NULL THEN CAST(anon._random() * 4611686018427387904 AS UBIGINT)
                        ELSE hash(hash(record, seed)) END AS draw
      FROM (SELECT struct_pack(*COLUMNS(lambda column_name: lower(column_name) <> 'is_reference')) AS kept,
                   struct_pack(*COLUMNS(*)) AS record
            FROM query_table(anon._checked_fraction('anon.split_reference', 'fraction', fraction,
                     anon._checked_table('anon.split_reference', 'tbl', tbl,
                         CASE WHEN seed IS NULL THEN CAST(tbl AS VARCHAR)
                              ELSE anon._checked_whole('anon.split_reference', 'seed', seed, 0,
                                                       CAST(tbl AS VARCHAR)) END)))));
COMMENT ON MACRO TABLE anon.split_reference IS
    'Marks a random part of a table as the reference sample that releases of the rest are compared with.';
