-- anon._checked_people: how many people the people of the table are drawn from: the population, which has at least as
-- many, or they themselves where `population` is NULL. A table without rows, or without people, is refused.
CREATE OR REPLACE MACRO anon._checked_people(caller, population, row_count, people, person) AS
    CASE WHEN person IS NULL THEN anon._checked_population(caller, population, row_count)
         WHEN people = 0
              THEN anon._checked_rows(caller, row_count,
                       error(caller || ': person must name a column that says whose rows they are; got '
                             || CAST(person AS VARCHAR) || ', which is NULL in every row.'))
         WHEN population IS NULL THEN CAST(people AS DOUBLE)
         WHEN isfinite(TRY_CAST(population AS DOUBLE)) AND TRY_CAST(population AS DOUBLE) >= people
              THEN CAST(population AS DOUBLE)
         ELSE error(anon._must_be(caller, 'population',
                                  'NULL or at least the number of people, ' || CAST(people AS VARCHAR),
                                  population)) END;
