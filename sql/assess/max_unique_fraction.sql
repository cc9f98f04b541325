-- anon.max_unique_fraction: largest expected fraction of unique rows, over all distributions, when a column set takes
-- `distinct_values` values in a population of `population` rows.
--     distinct_values  number of different values of the column set [a number, at least 0]
--     population       number of people in the population [a number above 0]
--     D/(e n) for D <= n, e^(-n/D) for D > n      (Probabilistic Anonymity, Theorems 1 and 2, Figure 1; the printed
--     Theorem 2 lost the sign of the exponent)
-- promises: EqualsDefinition()
-- test: tests/assess/max_unique_fraction.test
CREATE OR REPLACE MACRO anon.max_unique_fraction(distinct_values, population) AS
    CASE WHEN NOT coalesce(anon._exact_number(population) > 0, population IS NULL)
              OR NOT coalesce(anon._exact_number(distinct_values) >= 0, distinct_values IS NULL)
              THEN anon._refuse(anon._must_be('anon.max_unique_fraction', 'population',
                                              'above 0 and distinct_values at least 0',
                                              coalesce(CAST(distinct_values AS VARCHAR), 'NULL') || ' values in '
                                              || coalesce(CAST(population AS VARCHAR), 'NULL') || ' rows'))
         WHEN anon._exact_number(distinct_values) <= anon._exact_number(population)
              THEN anon._exact_number(distinct_values) / (exp(1) * anon._exact_number(population))
         ELSE exp(-anon._exact_number(population) / anon._exact_number(distinct_values)) END;
COMMENT ON MACRO anon.max_unique_fraction IS
    'Largest expected fraction of unique rows for D distinct values in a population of n rows.';
