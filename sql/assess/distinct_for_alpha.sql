-- anon.distinct_for_alpha: how many distinct values a column set needs at least before a fraction `alpha` of the
-- population can be unique in it: the inverse of anon.max_unique_fraction.
--     alpha       fraction of the population [a number between 0 and 1]
--     population  number of people in the population [a number above 0]
--     e n alpha for alpha <= 1/e, n / ln(1/alpha) above      (Probabilistic Anonymity, Theorem 3, and Theorem 1 solved)
-- promises: EqualsDefinition()
-- test: tests/assess/distinct_for_alpha.test
CREATE OR REPLACE MACRO anon.distinct_for_alpha(alpha, population) AS
    CASE WHEN NOT coalesce(anon._exact_number(alpha) > 0 AND anon._exact_number(alpha) < 1, alpha IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_for_alpha', 'alpha', 'between 0 and 1, both excluded',
                                              alpha))
         WHEN NOT coalesce(anon._exact_number(population) > 0, population IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_for_alpha', 'population', 'above 0', population))
         WHEN anon._exact_number(alpha) <= exp(-1)
              THEN anon._exact_number(alpha) * exp(1) * anon._exact_number(population)
         -- constants are computed before anything is refused: no logarithm of 0, which may be an error
         ELSE anon._exact_number(population)
              / -ln(CASE WHEN anon._exact_number(alpha) > 0 THEN anon._exact_number(alpha) END) END;
COMMENT ON MACRO anon.distinct_for_alpha IS
    'Distinct values that a column set needs before a fraction alpha of the population can be unique in it.';
