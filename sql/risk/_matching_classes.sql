-- anon._matching_classes: how many rows each class matches, and what they weigh, where NULL matches anything: two
-- classes match that are equal in every column where neither is NULL.
--     alpha   how much a match counts that another class's NULLs allow; classes without a NULL count fully
-- (sdcMicro's definition.) Classes are compared by pairs of patterns, which columns are NULL: for each pair it is an
-- equality join by what they have in neither. Codes are put together by xor, so that what two classes share is the code
-- of all their columns less that of those where the other is NULL. A class without NULL is compared only with patterns
-- that have one.
CREATE OR REPLACE MACRO anon._matching_classes(records, alpha) AS TABLE
WITH _match_classes AS (
    SELECT class, any_value(codes) AS codes, sum(row_count)::BIGINT AS row_count, fsum(stands_for) AS stands_for
    FROM query_table(records) GROUP BY class
), _match_shaped AS MATERIALIZED (                             -- hashed twice: hash(a, b) itself is a xor of hashes
    SELECT class, row_count, stands_for,
           list_transform(codes, lambda code, place: CASE WHEN code IS NOT NULL THEN hash(hash(code, place)) END)
               AS places,
           coalesce(list_aggregate(places, 'bit_xor'), 0) AS whole,
           list_filter(range(1, len(codes) + 1), lambda place: codes[place] IS NULL) AS missing,
           hash(missing) AS pattern
    FROM _match_classes
), _match_patterns AS MATERIALIZED (
    SELECT pattern, any_value(missing) AS missing FROM _match_shaped GROUP BY pattern
), _match_pairs AS MATERIALIZED (
    SELECT own.pattern AS own_pattern, other.pattern AS other_pattern,
           list_filter(other.missing, lambda place: NOT list_contains(own.missing, place)) AS own_extra,
           list_filter(own.missing, lambda place: NOT list_contains(other.missing, place)) AS other_extra,
           CASE WHEN len(other.missing) > 0 THEN alpha::DOUBLE ELSE 1 END AS counts,
           hash(other.pattern, other_extra) AS compared
    FROM _match_patterns AS own, _match_patterns AS other
    WHERE len(own.missing) > 0 OR len(other.missing) > 0
), _match_others AS MATERIALIZED (
    SELECT compared, xor(whole, anon._codes_together(places, other_extra)) AS shared,
           sum(row_count) AS row_count, fsum(stands_for) AS stands_for
    FROM _match_shaped
         JOIN (SELECT DISTINCT other_pattern, other_extra, compared FROM _match_pairs) ON pattern = other_pattern
    GROUP BY ALL
), _match_found AS (
    SELECT class, sum(counts * others.row_count) AS found, fsum(counts * others.stands_for) AS found_weight
    FROM (SELECT class, counts, compared, xor(whole, anon._codes_together(places, own_extra)) AS shared
          FROM _match_shaped JOIN _match_pairs ON pattern = own_pattern)
         JOIN _match_others AS others USING (compared, shared)
    GROUP BY class
)
-- a class with a NULL has found itself, too, which counts fully
SELECT class, row_count + coalesce(found, 0) - CASE WHEN len(missing) > 0 THEN alpha::DOUBLE * row_count ELSE 0 END
           AS frequency,
       stands_for + coalesce(found_weight, 0) - CASE WHEN len(missing) > 0 THEN alpha::DOUBLE * stands_for ELSE 0 END
           AS stands_for
FROM _match_shaped LEFT JOIN _match_found USING (class);
