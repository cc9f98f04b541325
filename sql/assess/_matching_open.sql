-- anon._matching_open: of each open class, how many rows it matches in open classes of other patterns, and what they
-- weigh. Names of steps of anon._matching_classes:
--     opened, pairs   the open classes, and the pairs of their patterns
--     tried, chances  the anchors of up to four columns, and the share of pairs of classes that agree there
--     total           the number of all classes
-- Two patterns are joined by an anchor where it finds fewer candidates than they have classes, all by anchors of one
-- length, the shortest that finds no more than there are classes in the table. The others are compared by all columns
-- that are NULL in neither, added up before they are joined: many open classes may match many.
-- DuckDB makes a hash table of the side that it expects to be smaller, the semi join lets it expect that of the rarer
-- patterns: to read `places` back from a hash table, for every candidate, would take twice the time of the join.
CREATE OR REPLACE MACRO anon._matching_open(opened, pairs, tried, chances, total) AS TABLE
WITH _match_costs AS MATERIALIZED (                             -- candidates by an anchor, or rows without one
    SELECT own_pattern, other_pattern, own_extra, other_extra, depth, anchor, hash(anchor) AS anchor_code,
           own_classes * other_classes * coalesce(odds, 1) AS found, own_classes + other_classes AS compared_rows
    FROM query_table(pairs) JOIN query_table(tried) USING (missing) LEFT JOIN query_table(chances) USING (anchor)
    WHERE row(own_classes, own_pattern) < row(other_classes, other_pattern)
), _match_joined AS MATERIALIZED (                              -- pairs of patterns that are joined by an anchor
    FROM _match_costs
    WHERE found < compared_rows
          AND depth = (SELECT min(depth)
                       FROM (SELECT depth, sum(least(found, compared_rows)) AS cost FROM _match_costs GROUP BY depth),
                            query_table(total)
                       WHERE cost <= classes)
), _match_opened AS MATERIALIZED (                              -- the rarer pattern of a pair looks for the other
    SELECT own.class, own.row_count, own.stands_for, other.class AS other_class, other.row_count AS other_rows,
           other.stands_for AS other_weight
    FROM (SELECT class, row_count, stands_for, other_pattern, anchor_code, other_extra,
                 anon._codes_at(places, anchor) AS shared,
                 xor(whole, anon._codes_at(places, own_extra)) AS shared_whole
          FROM (FROM query_table(opened) SEMI JOIN _match_joined ON pattern = own_pattern)
               JOIN _match_joined ON pattern = own_pattern) AS own
         JOIN (SELECT class, row_count, stands_for, other_pattern, anchor_code, places, whole,
                      anon._codes_at(places, anchor) AS shared
               FROM query_table(opened)
                    JOIN (SELECT DISTINCT other_pattern, anchor, anchor_code FROM _match_joined)
                    ON pattern = other_pattern) AS other
         USING (other_pattern, anchor_code, shared)
    WHERE own.shared_whole = xor(other.whole, anon._codes_at(other.places, own.other_extra))
), _match_apart AS MATERIALIZED (                               -- pairs of patterns without an anchor
    FROM query_table(pairs)
         ANTI JOIN (SELECT own_pattern, other_pattern FROM _match_joined
                    UNION ALL
                    SELECT other_pattern, own_pattern FROM _match_joined) USING (own_pattern, other_pattern)
), _match_others AS MATERIALIZED (
    SELECT compared, xor(whole, anon._codes_at(places, other_extra)) AS shared,
           sum(row_count::DOUBLE) AS row_count, fsum(stands_for) AS stands_for
    FROM query_table(opened)
         JOIN (SELECT DISTINCT other_pattern, other_extra, compared FROM _match_apart) ON pattern = other_pattern
    GROUP BY ALL
)
SELECT class, sum(others.row_count) AS found, fsum(others.stands_for) AS found_weight
FROM (SELECT class, compared, xor(whole, anon._codes_at(places, own_extra)) AS shared
      FROM query_table(opened) JOIN _match_apart ON pattern = own_pattern)
     JOIN _match_others AS others USING (compared, shared)
GROUP BY class
UNION ALL
SELECT class, sum(other_rows), fsum(other_weight) FROM _match_opened GROUP BY class
UNION ALL
SELECT other_class, sum(row_count), fsum(stands_for) FROM _match_opened GROUP BY other_class;
