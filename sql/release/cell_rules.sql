-- anon.cell_rules: the cells of an aggregate table with all margins, and which rules of primary suppression each
-- breaks.
--     people       people who contribute to the cell: whose `measure` is not NULL
--     value        the number of people, or the sum of `measure`
--     is_small     whether there are fewer than `k` people
--     is_guessed   whether the second largest contributor can compute the largest contribution within `p` percent, by
--                  subtracting its own contribution from the sum
--     is_dominated whether the n largest contributions together have more than the given percentage of the sum
--     is_primary   whether the cell breaks one of these rules, so that it must not be published
--     by           the columns of the table; a margin has the label Total [a list of column names]
--     measure      the column whose sums the table shows; NULL: it counts people [a name, or NULL]
--     k            people of a cell, at least [a whole number, at least 2]
--     p            percentage within which nobody may compute a contribution; NULL: no such rule [a number above 0, at
--                  most 100, or NULL]
--     dominance    how many of the largest contributions may have at most what percentage of the sum; NULL: no such
--                  rule [a whole number from 1 to 5 and a percentage, or NULL]
--     person       column that identifies people: all rows of a person are one contribution, and a row without one
--                  counts as nobody. NULL: every row is a person [a name, or NULL]
-- promises: TrueCells(), InvariantUnder(*TABLE)
-- test: tests/release/cell_rules.test
CREATE OR REPLACE MACRO anon.cell_rules(
    tbl, by, measure := NULL, k := 10, p := 10, dominance := NULL, person := NULL
) AS TABLE
WITH _duckanon_rules AS (
    SELECT COLUMNS("by"), _duckanon_people AS people,
           CASE WHEN measure IS NULL THEN _duckanon_people ELSE coalesce(_duckanon_sum, 0) END::DOUBLE AS "value",
           _duckanon_people < k AND (_duckanon_people > 0 OR measure IS NOT NULL AND _duckanon_sum IS NOT NULL)
               AS is_small,
           coalesce(measure IS NOT NULL AND p / 100 * _duckanon_largest[1] - _duckanon_absolute + _duckanon_largest[1]
                    + coalesce(_duckanon_largest[2], 0) > 1e-9 * _duckanon_absolute, false) AS is_guessed,
           coalesce(measure IS NOT NULL
                    AND list_sum(_duckanon_largest[1:TRY_CAST(dominance AS DOUBLE[])[1]::BIGINT]) * 100
                        / TRY_CAST(dominance AS DOUBLE[])[2]
                        - _duckanon_absolute > 1e-9 * _duckanon_absolute, false) AS is_dominated
    FROM anon._cells('anon.cell_rules',
                     anon._checked_cells('anon.cell_rules', tbl, "by", measure, person, k, p, dominance),
                     "by", measure, person, greatest(2, coalesce(TRY_CAST(dominance AS DOUBLE[])[1]::BIGINT, 2)))
    WHERE CASE WHEN isfinite(coalesce(_duckanon_absolute, 0)) THEN true
               ELSE error('anon.cell_rules: measure must have finite values and sums.') END
)
SELECT *, is_small OR is_guessed OR is_dominated AS is_primary
FROM _duckanon_rules
ORDER BY COLUMNS("by") ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.cell_rules IS
    'The cells of an aggregate table with margins: people, value, and which rules of primary suppression each breaks.';
