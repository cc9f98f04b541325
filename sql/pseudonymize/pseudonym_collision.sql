-- anon.pseudonym_collision: probability that any two of `distinct_values` different values get the same pseudonym.
--     1 - exp(-n (n - 1) / (2 * 16^length))      (the birthday bound; exact to a relative error of n / 16^length)
--     distinct_values  number of different values, such as people [a whole number, at least 0]
--     length           number of hexadecimal digits of a pseudonym [a whole number from 8 to 64]
-- promises: EqualsDefinition()
-- test: tests/pseudonymize/pseudonym_collision.test
CREATE OR REPLACE MACRO anon.pseudonym_collision(distinct_values, length := 64) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(length AS VARCHAR), '[89]|[1-5]\d|6[0-4]'), true)
              THEN anon._refuse(anon._must_be('anon.pseudonym_collision', 'length', 'a whole number from 8 to 64',
                                              length))
         WHEN distinct_values IS NULL THEN NULL
         WHEN NOT regexp_full_match(CAST(distinct_values AS VARCHAR), '\d{1,18}')
              THEN anon._refuse(anon._must_be('anon.pseudonym_collision', 'distinct_values',
                                              'a whole number of at least 0', distinct_values))
         -- below 1e-5 two terms of the series have sixteen digits right, and the difference would have fewer
         ELSE list_transform([CAST(distinct_values AS DOUBLE) * greatest(CAST(distinct_values AS DOUBLE) - 1, 0) / 2
                              / pow(16::DOUBLE, CAST(length AS DOUBLE))], lambda expected:
                  CASE WHEN expected < 1e-5 THEN expected * (1 - expected / 2) ELSE 1 - exp(-expected) END)[1] END;
COMMENT ON MACRO anon.pseudonym_collision IS
    'Probability that any two of several values get the same pseudonym of a given length.';
