-- anon._checked_risk: the name of the table, after a look at the arguments that the measures of risk have in common.
CREATE OR REPLACE MACRO anon._checked_risk(
    caller, tbl, cols, weight, population, household, person, method, nulls, alpha
) AS
    anon._checked_choice(caller, 'method', method, ['exact', 'approximate'],
        anon._checked_person(caller, person, cols,
            anon._checked_other(caller, 'weight', weight, cols,
                anon._checked_other(caller, 'household', household, cols,
                    CASE WHEN weight IS NOT NULL AND population IS NOT NULL
                              THEN error(caller || ': population must be NULL where weight is given, since weights '
                                         || 'say how many people there are; got ' || CAST(population AS VARCHAR)
                                         || '.')
                         WHEN anon._checked_nulls(caller, nulls, alpha, person) IS NOT NULL
                              THEN anon._checked_groups(caller, tbl, cols, 'value')
                         END))));
