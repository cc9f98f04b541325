-- anon._round_cut: the roundest number that parts two neighbouring numbers of anon._plan_number, where the upper one's
-- part begins. Of numbers the one with the fewest digits, nearest to the middle of the two; of times the first
-- moment of a decade, a year, a quarter, a month, or else of a day, an hour, ... nearest to the middle (the last day
-- before `high` would tell which day that is).
--     is_shared  whether so many people have `high` that it may be named; else the cut lies below it
--     kind       'numeric' or 'date'
CREATE OR REPLACE MACRO anon._round_cut(low, high, is_shared, kind) AS
    coalesce(list_filter(
        CASE kind WHEN 'numeric'
                  THEN list_transform(range(-15, 17), lambda digits:   -- .001 is no double: divide by 1000
                           CASE WHEN digits >= 0 AND is_shared THEN floor(high * pow(10, digits)) / pow(10, digits)
                                WHEN digits >= 0 THEN round((low / 2 + high / 2) * pow(10, digits)) / pow(10, digits)
                                WHEN is_shared THEN floor(high / pow(10, -digits)) * pow(10, -digits)
                                ELSE round((low / 2 + high / 2) / pow(10, -digits)) * pow(10, -digits) END)
                  ELSE list_concat(
                           list_transform(['decade', 'year', 'quarter', 'month'], lambda period:
                               CAST(epoch_us(date_trunc(period, make_timestamp(
                                   CAST(high - CASE WHEN is_shared THEN 0 ELSE 1 END AS BIGINT)))) AS DOUBLE)),
                           list_transform([86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1], lambda unit:
                               CASE WHEN is_shared THEN floor(high / unit) * unit
                                    ELSE round((low / 2 + high / 2) / unit) * unit END)) END,
        lambda cut: cut > low AND (cut < high OR is_shared AND cut <= high))[1],
        CASE WHEN is_shared THEN high ELSE low / 2 + high / 2 END);
