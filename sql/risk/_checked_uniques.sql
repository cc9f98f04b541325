-- anon._checked_uniques: the name of the table, after a look at the arguments of anon.population_uniques. A set of
-- columns that interact has at least two of them, all among cols.
CREATE OR REPLACE MACRO anon._checked_uniques(tbl, cols, population, interactions, variant, nulls, person) AS
    anon._checked_choice('anon.population_uniques', 'variant', variant, ['corrected', 'arx', 'sdcmicro'],
        anon._checked_choice('anon.population_uniques', 'nulls', nulls, ['value', 'drop'],
            CASE WHEN NOT coalesce(isfinite(TRY_CAST(population AS DOUBLE)), false)
                      THEN error(anon._must_be('anon.population_uniques', 'population',
                                               'the number of people that the table is a sample of', population))
                 WHEN interactions IS NOT NULL AND NOT regexp_full_match(typeof(interactions), 'VARCHAR(\[\d*\]){2}')
                      THEN error(anon._must_be('anon.population_uniques', 'interactions',
                                               'NULL or a list of lists of columns such as [[''age'', ''sex'']]',
                                               interactions))
                 WHEN len(list_filter(TRY_CAST(interactions AS VARCHAR[][]), lambda names:
                              coalesce(len(list_distinct(list_transform(names, lambda named: lower(named)))), 0) < 2
                              OR len(list_filter(names, lambda named:
                                     named IS NULL OR NOT anon._is_among(named, cols))) > 0)) > 0
                      THEN error(anon._must_be('anon.population_uniques', 'interactions',
                                               'lists of two or more different columns among cols', interactions))
                 ELSE tbl END));
