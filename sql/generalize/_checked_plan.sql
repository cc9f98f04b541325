-- anon._checked_plan: passes `result` on where the numbers that a plan is fitted by make sense, refuses them otherwise.
CREATE OR REPLACE MACRO anon._checked_plan(caller, k, beta, population, max_suppressed_fraction, result) AS
    CASE WHEN NOT coalesce(TRY_CAST(beta AS DOUBLE) > 0 AND TRY_CAST(beta AS DOUBLE) < 1, false)
              THEN error(caller || ': beta must be between 0 and 1, both excluded; got ' || coalesce(CAST(beta AS VARCHAR), 'NULL') || '.')
         WHEN population IS NOT NULL AND NOT coalesce(TRY_CAST(population AS DOUBLE) >= k, false)
              THEN error(caller || ': population must be NULL or at least k; got ' || CAST(population AS VARCHAR) || '.')
         ELSE anon._checked_whole(caller, 'k', k, 2,
                  anon._checked_fraction(caller, 'max_suppressed_fraction', max_suppressed_fraction, result)) END;
