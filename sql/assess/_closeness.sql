-- anon._closeness: how far the distribution of the sensitive column in each class is from that in the whole table.
--     'equal'    half the sum of |p - q|: every value is as far from every other (variational distance)
--     'ordered'  the earth mover's distance when neighbouring values lie 1/(m-1) apart, m the number of values:
--                1/(m-1) sum over i of |P_i - Q_i|, P and Q the cumulative shares; NULL comes after all others
--     'auto'     'ordered' for numbers, dates and booleans, 'equal' for text and everything else
-- A class's own P only changes at its own values, so the sum is taken between them, with running sums of Q on both
-- sides of the place where Q overtakes P (the ASOF join, once per share that occurs): the cost grows with the number of
-- cells, not classes times values.
-- With `person` a cell counts the different people who have the value in the class, shares are shares of the sum of
-- these counts, and class_size is the number of different people. A class of which no row says whose it is has no
-- distribution: it is as far away as can be, 1. Classes are told by their hash (anon._sensitive_members).
-- (Li, Li and Venkatasubramanian 2007)
CREATE OR REPLACE MACRO anon._closeness(caller, tbl, cols, sensitive, distance, nulls, person) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members(
             caller, anon._checked_choice(caller, 'distance', distance, ['auto', 'ordered', 'equal'], tbl),
             cols, sensitive, nulls, person)
), _duckanon_cells AS MATERIALIZED (
    FROM anon._sensitive_cells('_duckanon_members', person)
), _duckanon_chosen AS MATERIALIZED (
    SELECT CASE WHEN distance <> 'auto' THEN distance
                WHEN anon._kind(typeof(value)) IN ('numeric', 'date', 'boolean') THEN 'ordered'
                ELSE 'equal' END AS kind
    FROM _duckanon_cells LIMIT 1
), _duckanon_sizes AS MATERIALIZED (
    SELECT class, sum(size)::BIGINT AS class_total FROM _duckanon_cells GROUP BY class
), _duckanon_totals AS (                                       -- the whole table: every value, its place and its share
    SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) AS place, count(*) OVER () AS places,
           sum(size) / sum(sum(size)) OVER () AS share,
           sum(sum(size)) OVER (ORDER BY value ASC NULLS LAST) / sum(sum(size)) OVER () AS reached
    FROM _duckanon_cells WHERE size > 0 GROUP BY value
), _duckanon_running AS MATERIALIZED (                         -- ... and the sum of its cumulative shares up to there
    SELECT *, sum(reached) OVER (ORDER BY place ASC NULLS LAST) AS area FROM _duckanon_totals
), _duckanon_steps AS (                                        -- each class: where its cumulative share changes
    SELECT class, place, area - reached AS area_before, sum(size) OVER ranked AS own_people,
           lead(place, 1, places + 1) OVER ranked AS next_place
    FROM _duckanon_cells JOIN _duckanon_running
         ON _duckanon_cells.value IS NOT DISTINCT FROM _duckanon_running.value
    WHERE size > 0 AND (SELECT kind FROM _duckanon_chosen) = 'ordered'
    WINDOW ranked AS (PARTITION BY class ORDER BY place ASC NULLS LAST)
), _duckanon_shares AS MATERIALIZED (
    SELECT class, place, area_before, next_place, own_people / class_total AS own_reached
    FROM _duckanon_steps JOIN _duckanon_sizes USING (class)
), _duckanon_reached AS (                                      -- Q is below P up to the crossing, above it from there on
    SELECT own_reached, coalesce(place, 0) AS last_below
    FROM (SELECT DISTINCT own_reached FROM _duckanon_shares) ASOF LEFT JOIN _duckanon_running
         ON own_reached >= _duckanon_running.reached
), _duckanon_crossings AS (
    SELECT class, place, area_before, next_place, own_reached,
           greatest(least(last_below, next_place - 1), place - 1) AS crossing
    FROM _duckanon_shares JOIN _duckanon_reached USING (own_reached)
), _duckanon_distances AS (
    SELECT class, sum(greatest(size / class_total - share, 0)) AS farness
    FROM _duckanon_cells JOIN _duckanon_sizes USING (class) JOIN _duckanon_running
         ON _duckanon_cells.value IS NOT DISTINCT FROM _duckanon_running.value
    WHERE size > 0 AND (SELECT kind FROM _duckanon_chosen) = 'equal'
    GROUP BY class
    UNION ALL
    -- the areas of Q between two of a class's values are those before the next, less those before the first of them:
    -- over the class they add up to the whole area and twice what lies before each value
    SELECT class, (sum(own_reached * (2 * crossing - crossings.place - next_place + 2)
                       + 2 * (area_before - coalesce(area, 0)))
                   + (SELECT max(area) FROM _duckanon_running))
                  / greatest((SELECT max(places) FROM _duckanon_running) - 1, 1)
    FROM _duckanon_crossings AS crossings LEFT JOIN _duckanon_running ON crossing = _duckanon_running.place
    GROUP BY class
    UNION ALL
    SELECT class, 1 FROM _duckanon_sizes WHERE class_total = 0
)
SELECT class, class_total - coalesce(repeats, 0) AS class_size, kind AS distance_kind,
       greatest(farness, 0) AS farness
FROM _duckanon_distances JOIN _duckanon_sizes USING (class)
     LEFT JOIN anon._class_repeats('_duckanon_members') USING (class), _duckanon_chosen;
