-- anon._plan_match: the cell with `bucket` set to NULL where the one that was found does not hold the value. A text is
-- in a bucket only if it is the bucket's own text, or begins with it where the plan goes by prefixes; below a column's
-- first bucket lies another column's last. What cannot be read as a number is in no bucket of numbers.
CREATE OR REPLACE MACRO anon._plan_match(cell, lookup) AS
    struct_pack(value := cell.value, planned := cell.planned, number := cell.number, bucket :=
        CASE WHEN cell.planned.is_number THEN CASE WHEN cell.number IS NOT NULL THEN cell.bucket END
             WHEN cell.bucket < cell.planned.first THEN NULL
             WHEN cell.planned.is_prefix
                  THEN CASE WHEN starts_with(cell.text, lookup.texts[cell.bucket]) THEN cell.bucket END
             WHEN lookup.texts[cell.bucket] = cell.text THEN cell.bucket END);
