-- anon._number_ends: an interval as numbers, times in days since 1970, with infinity for ends that are open.
--     is_missing  whether there is no interval
CREATE OR REPLACE MACRO anon._number_ends(ends, is_missing) AS
    struct_pack(lo := coalesce(anon._days(ends.lo), CAST('-inf' AS DOUBLE)),
                hi := coalesce(anon._days(ends.hi), CAST('inf' AS DOUBLE)), is_missing := is_missing);
