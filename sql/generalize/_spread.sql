-- anon._spread: whether the sensitive values of each class are spread as is asked, `is_spread`.
--     members  name of a step with the rows of anon._sensitive_members
--     l, l_kind, c   as in anon.generalize; a sum of logarithms may be off by 1e-9
--     t        the largest distance from the whole table; NULL: any
-- Which step is read is known when the query is bound.
CREATE OR REPLACE MACRO anon._spread(members, l, l_kind, c, t, person) AS TABLE
WITH _duckanon_cells AS MATERIALIZED (
    FROM anon._sensitive_cells(members, person)
), _duckanon_rests AS (                                         -- the people of all values from the l-th on
    SELECT class, list_sum(sizes) - coalesce(list_sum(sizes[1:CAST(l AS BIGINT) - 1]), 0) AS rest
    FROM (SELECT class, list_sort(list(size), 'DESC', 'NULLS LAST') AS sizes FROM _duckanon_cells GROUP BY class)
), _duckanon_near AS (
    SELECT class, farness <= t + 1e-9 AS is_near FROM anon._closeness(members, 'auto', person)
), _duckanon_anywhere AS (
    SELECT class, true AS is_near FROM _duckanon_rests
)
SELECT class, is_near AND CASE l_kind WHEN 'distinct' THEN distinct_l >= l
                                      WHEN 'entropy' THEN entropy_l >= l - 1e-9
                                      ELSE rest > 0 AND largest < c * rest END AS is_spread
FROM anon._diversity('_duckanon_cells') JOIN _duckanon_rests USING (class)
     JOIN query_table(CASE WHEN t IS NULL THEN '_duckanon_anywhere' ELSE '_duckanon_near' END) USING (class);
