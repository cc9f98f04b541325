-- anon._candidate_counts: how many released rows hold each combination of values: the sizes of its classes, added up by
-- their binary digits, since bits can only be counted.
--     found, classes  names of steps: anon._containment, anon._release_classes
CREATE OR REPLACE MACRO anon._candidate_counts(found, classes) AS TABLE
WITH _duckanon_digits AS MATERIALIZED (
    SELECT block, digit, bit_or(set_bit(repeat('0', block_classes::INTEGER)::BIT, class::INTEGER, 1)) AS having_it
    FROM (SELECT block, class, block_classes, size, unnest(range(1 + floor(log2(size))::BIGINT)) AS digit FROM query_table(classes))
    WHERE (size >> digit) & 1 = 1 GROUP BY block, digit
)
SELECT any_value(cells) AS cells, any_value(size)::BIGINT AS people,
       coalesce(sum((1::BIGINT << digit) * bit_count(bits & having_it)), 0)::BIGINT AS candidates
FROM query_table(found) AS f LEFT JOIN _duckanon_digits AS d ON d.block = f.block
GROUP BY id;
