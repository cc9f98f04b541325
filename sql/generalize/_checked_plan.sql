-- anon._checked_plan: passes `result` on where the numbers that a plan is fitted by make sense, refuses them otherwise.
CREATE OR REPLACE MACRO anon._checked_plan(caller, k, beta, population, max_suppressed_fraction, result) AS
    anon._checked_open_fraction(caller, 'beta', beta,
        CASE WHEN population IS NOT NULL AND NOT coalesce(TRY_CAST(population AS DOUBLE) >= k, false)
                  THEN error(anon._must_be(caller, 'population', 'NULL or at least k', population))
             ELSE anon._checked_whole(caller, 'k', k, 2,
                      anon._checked_fraction(caller, 'max_suppressed_fraction', max_suppressed_fraction, result)) END);
