-- anon._diversity: what the sensitive values of each class look like to someone who knows that a person is in it. All
-- counts are of rows, or with `person` of the different people who have the value.
--     class_size  rows or different people; a person with two values counts once here, and once for each of them in
--     counts      how often each value occurs, the most frequent first; empty where nobody's name is known
--     total       the sum of the counts
--     entropy_l   exp of the entropy of the values' shares of the total, 0 where there is nobody
CREATE OR REPLACE MACRO anon._diversity(caller, tbl, cols, sensitive, nulls, person := NULL) AS TABLE
WITH _duckanon_cells AS (
    FROM anon._sensitive_cells(caller, tbl, cols, sensitive, nulls, person := person)
), _duckanon_counted AS (
    SELECT COLUMNS(cols), sum(_duckanon_size)::BIGINT AS _duckanon_rows,
           sum(_duckanon_size * ln(greatest(_duckanon_size, 1))) AS _duckanon_value,
           list(_duckanon_size) FILTER (_duckanon_size > 0) AS _duckanon_size
    FROM _duckanon_cells
    GROUP BY ALL
), _duckanon_lists AS (
    SELECT struct_pack(*COLUMNS(cols)) AS class, _duckanon_rows AS total, _duckanon_value AS logs,
           coalesce(list_sort(_duckanon_size, 'DESC', 'NULLS LAST'), []) AS counts
    FROM _duckanon_counted
)
SELECT class, coalesce(people, total) AS class_size, len(counts) AS distinct_l,
       CASE WHEN total = 0 THEN 0 ELSE greatest(exp(ln(total) - logs / total), 1) END AS entropy_l, counts, total
FROM _duckanon_lists LEFT JOIN anon._class_people(caller, tbl, cols, nulls, person) USING (class);
