-- anon.allocate: how many distinct values each column may keep when all of them together may take `budget`: a list of
-- whole numbers in the order of `distinct_counts`, whose product does not exceed the budget and none of which could be
-- one larger.
--     budget           number of combinations that all columns together may take [a number, at least 1]
--     distinct_counts  number of values that each column has now: no column is given more [a list of whole numbers, at
--                      least 1]
--     weights          how much each column matters, in the same order; NULL: all the same [a list of numbers above 0,
--                      or NULL]
-- What is minimized is sum(w / d'), the weighted rank difference of quantiles (Probabilistic Anonymity, Section 3.1,
-- Equation 1): each column gets d' proportional to w; a column that has fewer values keeps them, one whose share is
-- below 1 becomes one value, and the rest is solved again (anon._shares_level). Shares are rounded down; what that
-- leaves goes where one more value helps most.
-- promises: EqualsDefinition()
-- test: tests/generalize/allocate.test
CREATE OR REPLACE MACRO anon.allocate(budget, distinct_counts, weights := NULL) AS
    CASE WHEN budget IS NULL OR distinct_counts IS NULL THEN NULL
         WHEN NOT coalesce(anon._exact_number(budget) >= 1, false)
              THEN error(anon._must_be('anon.allocate', 'budget', 'at least 1', budget))
         WHEN NOT coalesce(list_min(list_transform(anon._numbers(distinct_counts),
                                                   lambda each: coalesce(each, 0))) >= 1, false)
              THEN error(anon._must_be('anon.allocate', 'distinct_counts', 'a list of numbers of at least 1',
                                       distinct_counts))
         WHEN len(anon._numbers(weights)) <> len(anon._numbers(distinct_counts))
              THEN error('anon.allocate: weights must have one number for each of the '
                         || len(anon._numbers(distinct_counts)) || ' columns; got ' || CAST(weights AS VARCHAR) || '.')
         WHEN NOT coalesce(list_min(list_transform(anon._numbers(weights), lambda weight: coalesce(weight, -1))) >= 0
                           AND list_max(anon._numbers(weights)) > 0, weights IS NULL)
              THEN error(anon._must_be('anon.allocate', 'weights', 'numbers of at least 0, not all of them 0', weights))
         ELSE CAST(anon._fill(anon._exact_number(budget), anon._numbers(distinct_counts),
                              coalesce(anon._numbers(weights),
                                       list_transform(anon._numbers(distinct_counts), lambda each: 1.0::DOUBLE)),
                              anon._shares_level(ln(greatest(anon._exact_number(budget), 1)),
                                                 anon._numbers(distinct_counts),
                                                 coalesce(anon._numbers(weights),
                                                          list_transform(anon._numbers(distinct_counts),
                                                                         lambda each: 1.0::DOUBLE)))) AS BIGINT[]) END;
COMMENT ON MACRO anon.allocate IS
    'Distinct values that each column may keep so that their product stays within a budget.';
