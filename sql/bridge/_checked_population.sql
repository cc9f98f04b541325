-- anon._checked_population: how many people the rows are drawn from: the population, which has at least as many people
-- as the table has rows, or the table itself where it is its own universe (NULL). An empty table is refused here too,
-- since every figure that asks for a population would be a division by nothing.
CREATE OR REPLACE MACRO anon._checked_population(caller, population, row_count) AS
    CASE WHEN coalesce(row_count, 0) = 0 THEN error(caller || ': the table has no rows to look at.')
         WHEN population IS NULL THEN CAST(row_count AS DOUBLE)
         WHEN isfinite(TRY_CAST(population AS DOUBLE)) AND TRY_CAST(population AS DOUBLE) >= row_count THEN CAST(population AS DOUBLE)
         ELSE error(caller || ': population must be NULL or at least the number of rows, ' || CAST(row_count AS VARCHAR)
                           || '; got ' || CAST(population AS VARCHAR) || '.') END;
