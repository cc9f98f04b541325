-- anon._checked_population: how many people the rows are drawn from: the population, which has at least as many people
-- as the table has rows, or the table itself where `population` is NULL. An empty table is refused.
CREATE OR REPLACE MACRO anon._checked_population(caller, population, row_count) AS
    anon._checked_rows(caller, row_count,
        CASE WHEN population IS NULL THEN CAST(row_count AS DOUBLE)
             WHEN isfinite(TRY_CAST(population AS DOUBLE)) AND TRY_CAST(population AS DOUBLE) >= row_count
                  THEN CAST(population AS DOUBLE)
             ELSE error(anon._must_be(caller, 'population',
                                      'NULL or at least the number of rows, ' || CAST(row_count AS VARCHAR),
                                      population)) END);
