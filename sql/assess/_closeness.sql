-- anon._closeness: how far the distribution of the sensitive column in each class is from that in the whole table.
--     'equal'    half the sum of |p - q|: every value is as far from every other (variational distance)
--     'ordered'  the earth mover's distance when neighbouring values lie 1/(m-1) apart, m the number of values:
--                1/(m-1) sum over i of |P_i - Q_i|, P and Q the cumulative shares; NULL comes after all others
--     'auto'     'ordered' for numbers, dates and booleans, 'equal' for text and everything else
-- A class's own P only changes at its own values, so the sum is taken between them, with running sums of Q on both
-- sides of the place where Q overtakes P (the ASOF join): the cost grows with the number of cells, not classes times
-- values.
-- With `person` a cell counts the different people who have the value in the class, shares are shares of the sum of
-- these counts, and class_size is the number of different people. A class of which no row says whose it is has no
-- distribution: it is as far away as can be, 1.
-- (Li, Li and Venkatasubramanian 2007)
CREATE OR REPLACE MACRO anon._closeness(caller, tbl, cols, sensitive, distance, nulls, person := NULL) AS TABLE
WITH _duckanon_all_cells AS MATERIALIZED (
    SELECT struct_pack(*COLUMNS(cols)) AS class, _duckanon_value AS value, _duckanon_size AS size
    FROM anon._sensitive_cells(
             caller, anon._checked_choice(caller, 'distance', distance, ['auto', 'ordered', 'equal'], tbl),
             cols, sensitive, nulls, person := person)
), _duckanon_cells AS (
    FROM _duckanon_all_cells WHERE size > 0
), _duckanon_sizes AS (
    SELECT class, sum(size)::BIGINT AS class_total FROM _duckanon_cells GROUP BY class
), _duckanon_totals AS (                                       -- the whole table: every value, its place and its share
    SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) AS place, count(*) OVER () AS places,
           sum(size) / sum(sum(size)) OVER () AS share,
           sum(sum(size)) OVER (ORDER BY value ASC NULLS LAST) / sum(sum(size)) OVER () AS reached
    FROM _duckanon_cells GROUP BY value
), _duckanon_running AS MATERIALIZED (  -- ... and the sum of its cumulative shares up to each place
    SELECT *, sum(reached) OVER (ORDER BY place ASC NULLS LAST) AS area FROM _duckanon_totals
), _duckanon_shares AS (                                       -- each class: its own values, the shares reached at them
    SELECT class, class_total, place, places, size / class_total AS own_share, share,
           sum(size) OVER ranked / class_total AS own_reached, area - reached AS area_before,
           lead(place, 1, places + 1) OVER ranked AS next_place,
           lead(area - reached, 1, (SELECT max(area) FROM _duckanon_running)) OVER ranked AS area_until,
           row_number() OVER ranked = 1 AS is_first
    FROM _duckanon_cells JOIN _duckanon_sizes USING (class) JOIN _duckanon_running
         ON _duckanon_cells.value IS NOT DISTINCT FROM _duckanon_running.value
    WINDOW ranked AS (PARTITION BY class ORDER BY place ASC NULLS LAST)
), _duckanon_crossings AS (  -- Q is below P up to the crossing, above it from there on
    SELECT _duckanon_shares.*,
           greatest(least(coalesce(_duckanon_running.place, 0), next_place - 1), _duckanon_shares.place - 1)
               AS crossing,
           greatest(least(coalesce(_duckanon_running.area, 0), area_until), area_before) AS area_at_crossing
    FROM _duckanon_shares ASOF LEFT JOIN _duckanon_running ON own_reached >= _duckanon_running.reached
), _duckanon_distances AS (
    SELECT class, any_value(class_total) AS class_total, sum(greatest(own_share - share, 0)) AS equal_distance,
           (sum(own_reached * (crossing - place + 1) - (area_at_crossing - area_before)
                + (area_until - area_at_crossing) - own_reached * (next_place - 1 - crossing))
            + sum(area_before) FILTER (is_first)) / greatest(max(places) - 1, 1) AS ordered_distance
    FROM _duckanon_crossings GROUP BY class
), _duckanon_chosen AS (
    SELECT CASE WHEN distance <> 'auto' THEN distance
                WHEN anon._kind(typeof(any_value(value))) IN ('numeric', 'date', 'boolean') THEN 'ordered'
                ELSE 'equal' END AS kind
    FROM _duckanon_all_cells
)
SELECT class, coalesce(people, class_total) AS class_size, kind AS distance_kind,
       greatest(CASE WHEN kind = 'ordered' THEN ordered_distance ELSE equal_distance END, 0) AS farness
FROM _duckanon_distances LEFT JOIN anon._class_people(caller, tbl, cols, nulls, person) USING (class), _duckanon_chosen
UNION ALL
FROM (SELECT class, 0, any_value(kind), 1 FROM _duckanon_all_cells, _duckanon_chosen WHERE person IS NOT NULL
      GROUP BY class HAVING sum(size) = 0);
