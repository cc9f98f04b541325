-- anon.split_reference: the rows of a table with a column `is_reference`, true for a random part of them: the people to
-- compare a release of the others with.
--     fraction  share of the rows that become the reference, exactly [a number from 0 to 1]
--     seed      NULL draws a new split each time; a number repeats the split, in whatever order the rows are stored [a
--               whole number, or NULL]
-- Each of several equal rows is drawn on its own. A column `is_reference` that the table has already is replaced.
-- promises: RowPer('row'), InvariantUnder('order', 'storage')
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
    'The table, with a random part marked as the reference sample for releases of the rest.';
