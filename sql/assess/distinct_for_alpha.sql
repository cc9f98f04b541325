-- anon.distinct_for_alpha: how many distinct values a column set needs at least before a fraction `alpha` of the
-- population can be unique in it: the inverse of anon.max_unique_fraction.
--     alpha       fraction of the population [a number between 0 and 1]
--     population  number of people in the population [a number above 0]
--     e n alpha for alpha <= 1/e, n / ln(1/alpha) above      (Probabilistic Anonymity, Theorem 3, and Theorem 1 solved)
-- promises: EqualsDefinition()
-- test: tests/assess/distinct_for_alpha.test
CREATE OR REPLACE MACRO anon.distinct_for_alpha(alpha, population) AS
    CASE WHEN alpha <= 0 OR alpha >= 1
              THEN anon._refuse(anon._must_be('anon.distinct_for_alpha', 'alpha', 'between 0 and 1, both excluded',
                                              alpha))
         WHEN population <= 0
              THEN anon._refuse(anon._must_be('anon.distinct_for_alpha', 'population', 'above 0', population))
         WHEN alpha <= exp(-1) THEN CAST(alpha AS DOUBLE) * exp(1) * population
         -- constants are computed before anything is refused: no logarithm of 0, which may be an error
         ELSE CAST(population AS DOUBLE) / -ln(CASE WHEN alpha > 0 AND alpha < 1 THEN alpha END) END;
COMMENT ON MACRO anon.distinct_for_alpha IS
    'Distinct values that a column set needs before a fraction alpha of the population can be unique in it.';
