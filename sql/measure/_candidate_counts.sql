-- anon._candidate_counts: how many released rows hold each combination of values: the sum of the sizes of its classes,
-- taken digit by digit of their binary form, since bits can only be counted.
--     found, classes  names of steps: anon._containment, anon._release_classes
CREATE OR REPLACE MACRO anon._candidate_counts(found, classes) AS TABLE
WITH _duckanon_digits AS MATERIALIZED (
    SELECT block, digit, anon._class_bits(block_classes, class) AS having_digit
    FROM (SELECT block, class, block_classes, size, unnest(range(1 + floor(log2(size))::BIGINT)) AS digit
          FROM query_table(classes))
    WHERE (size >> digit) & 1 = 1 GROUP BY block, digit
)
SELECT any_value(cells) AS cells, any_value(size)::BIGINT AS people,
       coalesce(sum((1::BIGINT << digit) * bit_count(bits & having_digit)), 0)::BIGINT AS candidates
FROM query_table(found) AS combinations LEFT JOIN _duckanon_digits AS digits ON digits.block = combinations.block
GROUP BY id;
