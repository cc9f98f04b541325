-- anon._shares_level: the t for which the product of the shares min(max(e^t w, 1), d) of all columns is the budget, d a
-- column's distinct count and w its weight. ln(product) is piecewise linear in t and grows: it is solved between the
-- corners around the budget, which are where a share leaves 1, t = -ln w, and where it reaches d, t = ln d - ln w.
-- (greatest: DuckDB 1.5 computes this before anon.allocate refuses its arguments.)
CREATE OR REPLACE MACRO anon._shares_level(log_budget, distinct_counts, weights) AS (
    WITH _duckanon_columns AS (
        SELECT -ln(greatest(weight, 1e-300)) AS low,
               ln(greatest(distinct_count, 1)) - ln(greatest(weight, 1e-300)) AS high
        FROM (SELECT unnest(distinct_counts) AS distinct_count, unnest(weights) AS weight)
        WHERE weight > 0
    ), _duckanon_corners AS (
        SELECT corner, sum(least(greatest(corner, low), high) - low) AS reached,
               count(*) FILTER (low <= corner AND corner < high) AS slope
        FROM (SELECT low AS corner FROM _duckanon_columns UNION SELECT high FROM _duckanon_columns), _duckanon_columns
        GROUP BY corner
    )
    SELECT max_by(corner + CASE WHEN slope > 0 THEN (log_budget - reached) / slope ELSE 0 END, corner)
    FROM _duckanon_corners
    WHERE reached <= log_budget);
