-- anon._fill: shares of a budget as whole numbers: min(max(e^level w, 1), d) rounded down, d a column's distinct count
-- and w its weight. Then each column in turn, where one more value lowers w / d' most first, gets one more if that
-- fits; at last each in turn gets all that still fits. A share that only rounding errors keep below a whole number is
-- rounded up, unless the product would then exceed the budget, be it by a rounding error.
CREATE OR REPLACE MACRO anon._fill(budget, distinct_counts, weights, level) AS (
    WITH _duckanon_shares AS (
        SELECT place, weight,
               CASE WHEN product(floor(share * (1 + 1e-12))) OVER () <= budget THEN floor(share * (1 + 1e-12))
                    ELSE greatest(floor(share * (1 - 1e-12)), 1) END AS kept
        FROM (SELECT place, weight, least(greatest(weight * exp(level), 1), distinct_count) AS share
              FROM (SELECT unnest(distinct_counts) AS distinct_count, unnest(weights) AS weight,
                           unnest(range(1, 1 + len(distinct_counts))) AS place))
    ), _duckanon_turns AS (
        SELECT list(kept ORDER BY place ASC NULLS LAST) AS kept,
               list(CAST(place AS DOUBLE)
                    ORDER BY weight / (kept * (kept + 1)) DESC NULLS LAST, place ASC NULLS LAST) AS turns
        FROM _duckanon_shares
    )
    SELECT list_reduce(
        list_concat([kept], list_concat(list_transform(turns, lambda turn: [turn, 1.0]),
                                        list_transform(turns, lambda turn: [turn, 1e308]))),
        lambda so_far, gift: list_transform(range(1, 1 + len(so_far)), lambda place:
            CASE WHEN place <> gift[1] THEN so_far[place]
                 ELSE least(counts[place], so_far[place] + gift[2],
                            greatest(so_far[place], list_transform(     -- how often the others fit into the budget
                                [list_product(so_far) / so_far[place]], lambda amount:
                                floor(whole / amount * (1 + 1e-15))
                                - (amount * floor(whole / amount * (1 + 1e-15)) > whole)::INTEGER)[1])) END))
    FROM (SELECT *, distinct_counts AS counts, budget AS whole     -- DuckDB 1.5: lambdas see no outer query
          FROM _duckanon_turns));
