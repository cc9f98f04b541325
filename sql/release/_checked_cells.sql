-- anon._checked_cells: the name of the table, after a look at the columns and rules of an aggregate table.
CREATE OR REPLACE MACRO anon._checked_cells(caller, tbl, by, measure, person, k, p, dominance) AS
    anon._checked_table(caller, 'tbl', tbl,
        CASE WHEN "by" IS NULL
                  THEN error(caller || ': by must be a list of column names such as [''sex'', ''region'']; got NULL.')
             WHEN measure IS NOT NULL AND typeof(measure) <> 'VARCHAR'
                  THEN error(anon._must_be(caller, 'measure', 'NULL or the name of one column, in quotes', measure))
             WHEN person IS NOT NULL AND typeof(person) <> 'VARCHAR'
                  THEN error(anon._must_be(caller, 'person', 'NULL or the name of one column, in quotes', person))
             WHEN p IS NOT NULL AND NOT coalesce(TRY_CAST(p AS DOUBLE) > 0 AND TRY_CAST(p AS DOUBLE) <= 100, false)
                  THEN error(anon._must_be(caller, 'p', 'NULL or a number above 0, at most 100', p))
             WHEN dominance IS NOT NULL
                  AND NOT coalesce(len(TRY_CAST(dominance AS DOUBLE[])) = 2
                                   AND TRY_CAST(dominance AS DOUBLE[])[1] IN (1, 2, 3, 4, 5)
                                   AND TRY_CAST(dominance AS DOUBLE[])[2] > 0
                                   AND TRY_CAST(dominance AS DOUBLE[])[2] <= 100, false)
                  THEN error(anon._must_be(caller, 'dominance', 'NULL or a whole number from 1 to 5 and a percentage '
                                                                || 'such as [2, 85]', dominance))
             ELSE anon._checked_whole(caller, 'k', k, 2,
                      anon._checked_by(caller, "by", list_filter([measure, person], lambda named: named IS NOT NULL),
                                       ['people', 'value', 'is_small', 'is_guessed', 'is_dominated', 'is_primary'],
                                       CAST(tbl AS VARCHAR))) END);
