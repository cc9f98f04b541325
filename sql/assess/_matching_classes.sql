-- anon._matching_classes: how many rows each class matches, and what they weigh, where NULL matches anything: two
-- classes match that are equal in every column where neither is NULL.
--     alpha        how much a match with a class that has a NULL counts; classes without one count fully, also for one
--                  that has
--     are_classes  whether each class is one record
-- (sdcMicro's definition.) Classes are compared by patterns, which columns are NULL: a full class, which has no NULL,
-- with all open ones of a pattern, and open ones with those of other patterns, each by an equality join of the columns
-- that are NULL in neither. Codes are put together by xor, so that this is the code of all columns less that of some.
-- There may be a hundred patterns, of which most are rare. So full classes are joined by an anchor, a few columns that
-- many patterns have in common, and what it finds is compared in full. Anchors are as short as they may be so that they
-- find fewer candidates than there are full classes, by a sample of these; small tables need none. So are pairs of
-- patterns (anon._matching_open).
CREATE OR REPLACE MACRO anon._matching_classes(records, alpha, are_classes) AS TABLE
WITH _match_grouped AS NOT MATERIALIZED (
    SELECT class, any_value(missing) AS missing, any_value(places) AS places, sum(row_count)::BIGINT AS row_count,
           fsum(stands_for) AS stands_for
    FROM query_table(records) GROUP BY class
), _match_classes AS NOT MATERIALIZED (
    SELECT class, missing, places, row_count, stands_for
    FROM query_table(CASE WHEN are_classes THEN records ELSE '_match_grouped' END)
), _match_shaped AS MATERIALIZED (
    SELECT class, row_count, stands_for, places, missing,
           xor(list_aggregate(places, 'bit_xor'),
               CASE WHEN len(missing) > 0 THEN anon._codes_at(places, missing) ELSE 0 END) AS whole
    FROM _match_classes
), _match_open AS MATERIALIZED (
    SELECT *, hash(missing) AS pattern FROM _match_shaped WHERE len(missing) > 0
), _match_patterns AS MATERIALIZED (
    SELECT pattern, any_value(missing) AS missing, count(*) AS open_classes FROM _match_open GROUP BY pattern
), _match_size AS MATERIALIZED (
    SELECT count(*)::UBIGINT AS classes FROM _match_shaped
), _match_sample AS MATERIALIZED (
    SELECT places FROM _match_shaped, _match_size
    WHERE len(missing) = 0 AND classes >= 65536 AND class % (classes // 1024::UBIGINT) = 0
), _match_ranked AS (                                           -- the columns that tell most classes apart come first
    SELECT list(place ORDER BY alike ASC NULLS LAST, place ASC NULLS LAST) AS ranked
    FROM (SELECT place, sum(size * size) AS alike
          FROM (SELECT place, code, count(*) AS size
                FROM (SELECT unnest(range(1, 1 + len(places))) AS place, unnest(places) AS code FROM _match_sample)
                GROUP BY ALL)
          GROUP BY place)
), _match_pairs AS MATERIALIZED (
    SELECT own.pattern AS own_pattern, other.pattern AS other_pattern,
           list_filter(other.missing, lambda place: NOT list_contains(own.missing, place)) AS own_extra,
           list_filter(own.missing, lambda place: NOT list_contains(other.missing, place)) AS other_extra,
           hash(other.pattern, other_extra) AS compared,
           list_sort(list_concat(own.missing, own_extra), 'ASC', 'NULLS LAST') AS missing,
           own.open_classes AS own_classes, other.open_classes AS other_classes
    FROM _match_patterns AS own JOIN _match_patterns AS other ON own.pattern <> other.pattern
), _match_tried AS MATERIALIZED (
    SELECT missing, depth, list_filter(ranked, lambda place: NOT list_contains(missing, place))[1:depth] AS anchor
    FROM (SELECT missing FROM _match_patterns UNION SELECT missing FROM _match_pairs), _match_ranked,
         (SELECT unnest([1, 2, 3, 4]) AS depth)
    WHERE ranked IS NOT NULL
), _match_odds AS MATERIALIZED (                                -- the share of pairs of classes that agree there
    SELECT anchor, sum(size * (size - 1)) / (sum(size) * (sum(size) - 1)) AS odds
    FROM (SELECT anchor, anon._codes_at(places, anchor) AS code, count(*) AS size
          FROM _match_sample, (SELECT DISTINCT anchor FROM _match_tried WHERE len(anchor) = depth)
          GROUP BY ALL)
    GROUP BY anchor
), _match_anchored AS MATERIALIZED (                            -- without an anchor all columns of the pattern
    SELECT pattern, anchor, CASE WHEN anchor IS NULL THEN missing END AS left_out, hash(anchor, left_out) AS anchor_code
    FROM _match_patterns
         LEFT JOIN (SELECT pattern, arg_min(anchor, depth) AS anchor
                    FROM _match_patterns JOIN _match_tried USING (missing) JOIN _match_odds USING (anchor)
                    WHERE open_classes * odds <= 0.0625 GROUP BY pattern) USING (pattern)
), _match_between AS MATERIALIZED (
    SELECT own.class, own.row_count, own.stands_for, other.class AS open_class, other.row_count AS open_rows,
           other.stands_for AS open_weight
    FROM (SELECT class, row_count, stands_for, places, whole, anchor_code,
                 xor(anon._codes_together(places, looked_at), CASE WHEN is_anchored THEN 0 ELSE whole END) AS shared
          FROM _match_shaped,
               (SELECT DISTINCT coalesce(anchor, left_out) AS looked_at, anchor IS NOT NULL AS is_anchored, anchor_code
                FROM _match_anchored)
          WHERE len(missing) = 0) AS own
         JOIN (SELECT class, row_count, stands_for, missing, whole, anchor, anchor_code,
                      CASE WHEN anchor IS NULL THEN whole ELSE anon._codes_at(places, anchor) END AS shared
               FROM _match_open JOIN _match_anchored USING (pattern)) AS other USING (anchor_code, shared)
    WHERE other.anchor IS NULL OR xor(own.whole, anon._codes_together(own.places, other.missing)) = other.whole
), _match_found AS (
    SELECT class, alpha::DOUBLE * sum(open_rows) AS found, alpha::DOUBLE * fsum(open_weight) AS found_weight
    FROM _match_between GROUP BY class
    UNION ALL
    SELECT class, sum(found), fsum(found_weight)
    FROM (SELECT open_class AS class, sum(row_count) AS found, fsum(stands_for) AS found_weight
          FROM _match_between GROUP BY open_class
          UNION ALL
          SELECT class, alpha::DOUBLE * found, alpha::DOUBLE * found_weight
          FROM anon._matching_open('_match_open', '_match_pairs', '_match_tried', '_match_odds', '_match_size'))
    GROUP BY class
)
SELECT class, row_count + coalesce(found, 0) AS frequency, stands_for + coalesce(found_weight, 0) AS stands_for
FROM _match_shaped LEFT JOIN _match_found USING (class);
