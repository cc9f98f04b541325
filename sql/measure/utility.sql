-- anon.utility: what a release keeps of the original's statistics, one row per statistic and column or pair of columns.
--     statistic    mean, variance, correlation, rank_correlation, ks (the largest difference of the distribution
--                  functions of numbers), total_variation (between the shares of categories)
--     column_name, other_column   a category is written as race = other, a missing value as asked IS NULL
--     original, released, difference   the values, and how far apart they are
--     normalized_difference   means in standard deviations of the original, variances as a share of the original's
--     median_difference   the median of the absolute normalized differences of the statistic, as in Table 4.1 of the
--                  Thesis
--     log          columns to take by their logarithms
--     special      values that have an indicator beside their number: 'off' for none, 'auto' for zeros that many have
--                  and codes such as -8, as the spectral releases find them, or MAP {'cigarettes': [-8]}
--     categories   numbers that are categories; NULL for whole ones of at most twelve values
--     hierarchies  of a coarse release: MAP {'education': 'education_hierarchy'}, as in anon.generalization_loss
--     seed         makes the draw of a coarse release repeatable
-- A coarse release (labels, intervals, ancestors) is what an analyst makes of it: in place of every cell a value drawn
-- from what it holds, all equally likely. Numbers are drawn between the ends, whole where the original's are, else with
-- as many decimals; '<25' and '*' end at the original's extremes, which an analyst would have to guess. Categories are
-- drawn without regard to their shares, which a release of labels does not tell.
--     (Thesis, Section 4.2.1)
-- test: tests/measure/utility.test
-- needs: python
CREATE OR REPLACE MACRO anon.utility(
    original, released, cols, hierarchies := NULL, log := [], special := 'off', categories := [], seed := NULL
) AS TABLE
SELECT unnest(anon._run_utility(anon._pack('anon.utility', original, cols, seed),
                                anon._pack('anon.utility', released, cols, seed),
                                {'meanings': anon._label_meanings('anon.utility', original, released, cols,
                                                                  hierarchies),
                                 'log': log, 'special': special, 'categories': categories, 'seed': seed}),
              max_depth := 2);
COMMENT ON MACRO TABLE anon.utility IS
    'How far means, variances, correlations and distributions of a release are from the original''s.';
