-- anon._checked_risk: the name of the table, after a look at the arguments that the measures of risk have in common.
CREATE OR REPLACE MACRO anon._checked_risk(
    caller, tbl, cols, weight, population, household, person, method, nulls, alpha
) AS
    anon._checked_choice(caller, 'method', method, ['exact', 'approximate'],
        anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop', 'any'],
            anon._checked_fraction(caller, 'alpha', alpha,
                anon._checked_person(caller, person, cols,
                    anon._checked_other(caller, 'weight', weight, cols,
                        anon._checked_other(caller, 'household', household, cols,
                            CASE WHEN weight IS NOT NULL AND population IS NOT NULL
                                      THEN error(caller || ': population must be NULL where weight is given, since '
                                                 || 'weights say how many people there are; got '
                                                 || CAST(population AS VARCHAR) || '.')
                                 WHEN nulls = 'any' AND person IS NOT NULL
                                      THEN error(caller || ': person must be NULL where nulls is any, since a person '
                                                 || 'whose rows match in several ways would count several times; got '
                                                 || CAST(person AS VARCHAR) || '.')
                                 ELSE anon._checked_groups(caller, tbl, cols,
                                                           CASE WHEN nulls = 'drop' THEN 'drop' ELSE 'value' END)
                                 END))))));
