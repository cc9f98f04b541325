-- anon._closeness: how far the distribution of the sensitive column in each class is from that in the whole table.
--     'equal'    half the sum of |p - q|: every value is as far from every other (variational distance)
--     'ordered'  the earth mover's distance when neighbouring values lie 1/(m-1) apart, m the number of values:
--                1/(m-1) sum over i of |P_i - Q_i|, P and Q the cumulative shares; NULL comes after all others
--     'auto'     'ordered' for numbers, dates and booleans, 'equal' for text and everything else
-- A class's own P only changes at its own values, so the sum is taken between them, with running sums of Q on both
-- sides of the place where Q overtakes P (the ASOF join): the cost grows with the number of cells, not classes times
-- values.
-- (Li, Li and Venkatasubramanian 2007)
CREATE OR REPLACE MACRO anon._closeness(caller, tbl, cols, sensitive, distance, nulls) AS TABLE
WITH _cells AS MATERIALIZED (
    SELECT struct_pack(*COLUMNS(cols)) AS class, _duckanon_value AS value, _duckanon_size AS size
    FROM anon._sensitive_cells(
             caller, anon._checked_choice(caller, 'distance', distance, ['auto', 'ordered', 'equal'], tbl),
             cols, sensitive, nulls)
), _sizes AS (
    SELECT class, sum(size)::BIGINT AS class_size FROM _cells GROUP BY class
), _totals AS (                                       -- the whole table: every value, its place and its share
    SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) AS place, count(*) OVER () AS places,
           sum(size) / sum(sum(size)) OVER () AS share,
           sum(sum(size)) OVER (ORDER BY value ASC NULLS LAST) / sum(sum(size)) OVER () AS reached
    FROM _cells GROUP BY value
), _running AS MATERIALIZED (                         -- ... and the sum of its cumulative shares up to each place
    SELECT *, sum(reached) OVER (ORDER BY place ASC NULLS LAST) AS area FROM _totals
), _shares AS (                                       -- each class: its own values, the shares reached at them
    SELECT class, class_size, place, places, size / class_size AS own_share, share,
           sum(size) OVER ranked / class_size AS own_reached, area - reached AS area_before,
           lead(place, 1, places + 1) OVER ranked AS next_place,
           lead(area - reached, 1, (SELECT max(area) FROM _running)) OVER ranked AS area_until,
           row_number() OVER ranked = 1 AS is_first
    FROM _cells JOIN _sizes USING (class) JOIN _running ON _cells.value IS NOT DISTINCT FROM _running.value
    WINDOW ranked AS (PARTITION BY class ORDER BY place ASC NULLS LAST)
), _crossings AS (                                    -- Q is below P up to the crossing, above it from there on
    SELECT _shares.*, greatest(least(coalesce(_running.place, 0), next_place - 1), _shares.place - 1) AS crossing,
           greatest(least(coalesce(_running.area, 0), area_until), area_before) AS area_at_crossing
    FROM _shares ASOF LEFT JOIN _running ON own_reached >= _running.reached
), _distances AS (
    SELECT class, any_value(class_size) AS class_size, sum(greatest(own_share - share, 0)) AS equal_distance,
           (sum(own_reached * (crossing - place + 1) - (area_at_crossing - area_before)
                + (area_until - area_at_crossing) - own_reached * (next_place - 1 - crossing))
            + sum(area_before) FILTER (is_first)) / greatest(max(places) - 1, 1) AS ordered_distance
    FROM _crossings GROUP BY class
), _chosen AS (
    SELECT CASE WHEN distance <> 'auto' THEN distance
                WHEN anon._kind(typeof(any_value(value))) IN ('numeric', 'date', 'boolean') THEN 'ordered'
                ELSE 'equal' END AS kind
    FROM _cells
)
SELECT class, class_size, kind AS distance_kind,
       greatest(IF(kind = 'ordered', ordered_distance, equal_distance), 0) AS farness
FROM _distances, _chosen;
