-- anon._people_anonymity: the answer of anon.k_anonymity for arguments that have to be looked at.
CREATE OR REPLACE MACRO anon._people_anonymity(tbl, cols, nulls, person, alpha) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._hashed_members('anon.k_anonymity', tbl, cols, nulls, person)
), _duckanon_sets AS (              -- hashed again: sums of hashes of neighbouring values could meet
    SELECT count(*) AS set_classes, sum(hash(class)) AS set_sum
    FROM _duckanon_members WHERE member IS NOT NULL GROUP BY member
), _duckanon_people AS (            -- is_linked: groups of people whose rows are in the same set of classes
    SELECT false AS is_linked, count(member) AS size, sum(row_count)::BIGINT AS row_count
    FROM _duckanon_members GROUP BY class
    UNION ALL
    SELECT true, count(*), NULL FROM _duckanon_sets GROUP BY set_classes, set_sum
), _duckanon_rows AS (
    SELECT false AS is_linked, _duckanon_size AS size, _duckanon_rows AS row_count
    FROM anon._classes('anon.k_anonymity', tbl, cols, nulls, is_open := nulls = 'any', alpha := alpha)
), _duckanon_sizes AS (
    FROM query_table(CASE WHEN anon._checked_nulls('anon.k_anonymity', nulls, alpha, person) IS NOT NULL
                               AND person IS NULL THEN '_duckanon_rows' ELSE '_duckanon_people' END)
)
SELECT min(size) FILTER (NOT is_linked) AS k,
       count(*) FILTER (NOT is_linked) AS classes, sum(row_count)::BIGINT AS "rows",
       count(*) FILTER (size = 1 AND NOT is_linked) AS singletons,
       sum(CASE WHEN size < 2 THEN row_count ELSE 0 END)::BIGINT AS rows_under_2,
       sum(CASE WHEN size < 3 THEN row_count ELSE 0 END)::BIGINT AS rows_under_3,
       sum(CASE WHEN size < 5 THEN row_count ELSE 0 END)::BIGINT AS rows_under_5,
       sum(CASE WHEN size < 10 THEN row_count ELSE 0 END)::BIGINT AS rows_under_10,
       sum(CASE WHEN size < 20 THEN row_count ELSE 0 END)::BIGINT AS rows_under_20,
       CASE WHEN person IS NULL THEN sum(row_count) ELSE coalesce(sum(size) FILTER (is_linked), 0) END::BIGINT
           AS people,
       CASE WHEN person IS NULL THEN min(size) ELSE coalesce(min(size) FILTER (is_linked), 0) END AS linked_k
FROM _duckanon_sizes
HAVING anon._checked_rows('anon.k_anonymity', count(*), true);
