-- anon._sample_median: the median of a bucket where at least 10 of its rows have it, else the roundest number between
-- the values of the 10 rows in its middle.
--     numbers  those of the bucket's rows, ascending
CREATE OR REPLACE MACRO anon._sample_median(numbers, column_type) AS
    list_transform(
        [{'numbers': numbers, 'median': numbers[(len(numbers) + 1) // 2],
          'first': greatest(1, least((len(numbers) + 1) // 2 - 5, len(numbers) - 9))}],
        lambda bucket: CASE WHEN len(list_filter(bucket.numbers, lambda number: number = bucket.median)) >= 10
                                 THEN bucket.median
                            ELSE anon._round_cut(bucket.numbers[bucket.first], bucket.numbers[bucket.first + 9], false,
                                                 anon._kind(column_type)) END)[1];
