-- anon._quantile_ends: the quantiles of a column of intervals as numbers, one list for each of their columns; `refused`
-- says why there are none, and is NULL where there are.
CREATE OR REPLACE MACRO anon._quantile_ends(name, ends, quantiles) AS
    struct_pack(
        name := any_value(name), records := count(*),
        estimate := CASE WHEN count(*) FILTER (anon._middle(ends.lo, ends.hi) IS NULL) = 0
                              THEN quantile_disc(anon._middle(ends.lo, ends.hi), quantiles) END,
        lower := quantile_disc(ends.lo, quantiles), upper := quantile_disc(ends.hi, quantiles),
        refused := CASE WHEN count(*) FILTER (ends.is_missing) > 0
                             THEN 'column "' || any_value(name) || '" has ' || count(*) FILTER (ends.is_missing)
                                  || ' NULLs, which no interval contains; remove them.'
                        WHEN count(*) FILTER (isnan(ends.lo) OR isnan(ends.hi)) > 0
                             THEN 'column "' || any_value(name) || '" holds NaN; leave these records out.'
                        WHEN count(*) FILTER (ends.lo > ends.hi) > 0
                             THEN 'column "' || any_value(name) || '" has ' || count(*) FILTER (ends.lo > ends.hi)
                                  || ' intervals whose lo is above hi.' END);
