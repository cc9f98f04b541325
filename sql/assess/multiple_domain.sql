-- anon.multiple_domain: how many values a column set can take when its columns take `distinct_counts` values each:
-- their product. As a double it does not overflow; past 1.8e308 it stays there.
--     distinct_counts  number of different values of each column [a list of numbers, at least 0]
--     D = d1 d2 ... dk      (Probabilistic Anonymity, Definition 3)
-- promises: EqualsDefinition()
-- test: tests/assess/multiple_domain.test
CREATE OR REPLACE MACRO anon.multiple_domain(distinct_counts) AS
    CASE WHEN NOT coalesce(list_min(list_transform(anon._numbers(distinct_counts),
                                                   lambda each: coalesce(each, -1))) >= 0,
                           distinct_counts IS NULL OR CAST(distinct_counts AS VARCHAR) = '[]')
              THEN anon._refuse(anon._must_be('anon.multiple_domain', 'distinct_counts', 'numbers of at least 0',
                                              distinct_counts))
         WHEN len(anon._numbers(distinct_counts)) = 0 THEN 1.0::DOUBLE
         WHEN isinf(list_product(anon._numbers(distinct_counts))) THEN 1.7976931348623157e308
         ELSE list_product(anon._numbers(distinct_counts)) END;
COMMENT ON MACRO anon.multiple_domain IS
    'Product of the distinct counts of several columns: the number of values that they can take together.';
