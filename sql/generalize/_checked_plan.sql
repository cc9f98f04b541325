-- anon._checked_plan: the name of the table, after a look at what a plan is fitted by.
CREATE OR REPLACE MACRO anon._checked_plan(caller, cols, k, beta, population, max_suppressed_fraction, person, tbl) AS
    anon._checked_open_fraction(caller, 'beta', beta,
        CASE WHEN population IS NOT NULL AND anon._population_table(population) IS NULL
                  AND NOT coalesce(isfinite(TRY_CAST(population AS DOUBLE)) AND TRY_CAST(population AS DOUBLE) >= k,
                                   false)
                  THEN error(anon._must_be(caller, 'population', 'NULL, at least k, or the name of a table',
                                           population))
             WHEN trim(anon._population_table(population)) = ''
                  THEN error(anon._must_be(caller, 'population', 'NULL, at least k, or the name of a table',
                                           'an empty text'))
             ELSE anon._checked_whole(caller, 'k', k, 2,
                      anon._checked_fraction(caller, 'max_suppressed_fraction', max_suppressed_fraction,
                          anon._checked_person(caller, person, cols,
                              anon._checked_names(caller, 'person', [person],
                                  anon._checked_names(caller, 'cols', cols, anon._checked(caller, tbl, cols)))))) END);
