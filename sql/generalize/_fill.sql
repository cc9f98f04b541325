-- anon._fill: shares of a budget as whole numbers: min(max(e^level w, 1), d) rounded down; then each column in turn,
-- where one value more lowers w / d' most first, gets one more if that fits, and at last all that still fits.
CREATE OR REPLACE MACRO anon._fill(budget, distinct_counts, weights, level) AS (
    WITH _duckanon_shares AS (
        SELECT place, weight, floor(least(greatest(weight * exp(level), 1), d) * (1 + 1e-12)) AS kept
        FROM (SELECT unnest(distinct_counts) AS d, unnest(weights) AS weight, unnest(range(1, 1 + len(distinct_counts))) AS place)
    ), _duckanon_turns AS (
        SELECT list(kept ORDER BY place) AS kept,
               list(CAST(place AS DOUBLE) ORDER BY weight / (kept * (kept + 1)) DESC, place) AS turns
        FROM _duckanon_shares
    )
    SELECT list_reduce(
        list_concat([kept], list_concat(list_transform(turns, lambda i: [i, 1.0]), list_transform(turns, lambda i: [i, 1e308]))),
        lambda so_far, turn: list_transform(so_far, lambda d, i:
            CASE WHEN i <> turn[1] THEN d
                 ELSE least(counts[i], d + turn[2], greatest(d, floor(whole / (list_product(so_far) / d) * (1 + 1e-15)))) END))
    FROM (SELECT *, distinct_counts AS counts, budget AS whole FROM _duckanon_turns));     -- DuckDB 1.5: lambdas see no outer query
