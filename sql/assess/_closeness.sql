-- anon._closeness: how far the distribution of the sensitive column in each class is from that in the whole table.
--     'equal'    half the sum of |p - q|: every value is as far from every other (variational distance)
--     'ordered'  the earth mover's distance when neighbouring values lie 1/(m-1) apart, m the number of values:
--                1/(m-1) sum over i of |P_i - Q_i|, P and Q the cumulative shares; NULL comes after all others
--     'auto'     'ordered' for numbers, dates and booleans, 'equal' for text and everything else
-- A class's own P only changes at its own values, so the sum is taken between them, with running sums of Q on both
-- sides of the place where Q overtakes P (the ASOF join, once per share that occurs): the cost grows with the number of
-- cells, not classes times values.
--     members      name of a step with the rows of anon._sensitive_members; classes are told by their hash
--     class_total  the sum of the class's counts, of rows or with `person` of the different people who have each value
-- Shares are shares of this sum; those of the table are of the different people who have each value anywhere, so that
-- whoever is in several classes counts once. A class of which no row says whose it is has no distribution: it is as far
-- away as can be, 1.
-- Sums are of whole numbers, exact in any order up to some ten million people, so that they do not change from run to
-- run.
-- (Li, Li and Venkatasubramanian 2007)
CREATE OR REPLACE MACRO anon._closeness(members, distance, person) AS TABLE
WITH _duckanon_cells AS MATERIALIZED (
    FROM anon._sensitive_cells(members, person)
), _duckanon_chosen AS MATERIALIZED (
    SELECT CASE WHEN distance <> 'auto' THEN distance
                WHEN anon._kind(typeof(value)) IN ('numeric', 'date', 'boolean') THEN 'ordered'
                ELSE 'equal' END AS kind
    FROM _duckanon_cells LIMIT 1
), _duckanon_sizes AS MATERIALIZED (
    SELECT class, sum(size)::BIGINT AS class_total FROM _duckanon_cells GROUP BY class
), _duckanon_row_totals AS NOT MATERIALIZED (
    SELECT value, sum(size)::BIGINT AS people FROM _duckanon_cells GROUP BY value
), _duckanon_people_totals AS NOT MATERIALIZED (
    SELECT value, count(DISTINCT member) AS people FROM query_table(members) GROUP BY value
), _duckanon_totals AS (                                       -- the whole table: every value, its place, its people
    SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) AS place, people,
           sum(people) OVER (ORDER BY value ASC NULLS LAST)::BIGINT AS people_until
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_row_totals' ELSE '_duckanon_people_totals' END)
    WHERE people > 0
), _duckanon_running AS MATERIALIZED (                         -- ... Q at it, and the sum of Q up to it, in people
    SELECT value, place, people, people_until, people_until / max(people_until) OVER () AS reached,
           sum(people_until) OVER (ORDER BY place ASC NULLS LAST)::DOUBLE AS area
    FROM _duckanon_totals
), _duckanon_whole AS MATERIALIZED (
    SELECT max(people_until)::DOUBLE AS everybody, max(area) AS whole_area, count(*) AS places FROM _duckanon_running
), _duckanon_steps AS (                                        -- each class: where its cumulative share changes
    SELECT class, place, area - people_until AS area_before, sum(size) OVER ranked AS own_people,
           lead(place) OVER ranked AS next_place
    FROM _duckanon_cells JOIN _duckanon_running
         ON _duckanon_cells.value IS NOT DISTINCT FROM _duckanon_running.value
    WHERE size > 0 AND (SELECT kind FROM _duckanon_chosen) = 'ordered'
    WINDOW ranked AS (PARTITION BY class ORDER BY place ASC NULLS LAST)
), _duckanon_shares AS MATERIALIZED (
    SELECT class, place, area_before, coalesce(next_place, places + 1) AS next_place, own_people,
           own_people / class_total AS own_reached
    FROM _duckanon_steps JOIN _duckanon_sizes USING (class), _duckanon_whole
), _duckanon_reached AS (                                     -- Q is below P up to the crossing, above it from there on
    SELECT own_reached, coalesce(place, 0) AS last_below
    FROM (SELECT DISTINCT own_reached FROM _duckanon_shares) ASOF LEFT JOIN _duckanon_running
         ON own_reached >= _duckanon_running.reached
), _duckanon_crossings AS (
    SELECT class, place, area_before, next_place, own_people,
           greatest(least(last_below, next_place - 1), place - 1) AS crossing
    FROM _duckanon_shares JOIN _duckanon_reached USING (own_reached)
), _duckanon_areas AS (
    -- the areas of Q from each of a class's values to the next add up to the whole area less that before the first
    SELECT class, sum(own_people * (2 * crossing - crossings.place - next_place + 2)) AS own_area,
           sum(2 * (area_before - coalesce(area, 0))) AS area
    FROM _duckanon_crossings AS crossings LEFT JOIN _duckanon_running ON crossing = _duckanon_running.place
    GROUP BY class
), _duckanon_excess AS (
    SELECT class, sum(greatest(size * everybody - people * class_total, 0)) AS excess
    FROM _duckanon_cells JOIN _duckanon_sizes USING (class) JOIN _duckanon_running
         ON _duckanon_cells.value IS NOT DISTINCT FROM _duckanon_running.value, _duckanon_whole
    WHERE size > 0 AND (SELECT kind FROM _duckanon_chosen) = 'equal'
    GROUP BY class
), _duckanon_distances AS (  -- times the people of the class and those of the table
    SELECT class, excess AS distance_in_people FROM _duckanon_excess
    UNION ALL
    SELECT class, (own_area * everybody + (area + whole_area) * class_total) / greatest(places - 1, 1)
    FROM _duckanon_areas JOIN _duckanon_sizes USING (class), _duckanon_whole
    UNION ALL
    SELECT class, NULL FROM _duckanon_sizes WHERE class_total = 0
)
SELECT class, class_total, kind AS distance_kind,
       CASE WHEN class_total = 0 THEN 1 ELSE distance_in_people / (class_total * everybody) END AS farness
FROM _duckanon_distances JOIN _duckanon_sizes USING (class), _duckanon_whole, _duckanon_chosen;
