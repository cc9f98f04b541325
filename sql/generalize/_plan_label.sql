-- anon._plan_label: the label of a cell, or its number (anon._plan_lookup), whichever the last three arguments are:
-- that of NULL, that of values which the plan has never seen, and those of the buckets.
CREATE OR REPLACE MACRO anon._plan_label(cell, is_planned, of_null, of_rest, of_buckets) AS
    CASE WHEN NOT is_planned THEN NULL
         WHEN cell.value IS NULL THEN of_null
         WHEN cell.bucket IS NULL THEN of_rest
         ELSE of_buckets[cell.bucket] END;
