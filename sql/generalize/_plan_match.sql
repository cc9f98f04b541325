-- anon._plan_match: the cell with `b` NULL where the bucket that was found is not the value's: a text is in it only if
-- it is the bucket's own, or begins with it where the plan goes by prefixes. (Before a column's first bucket is
-- another's last.) What cannot be read as a number where the plan goes by numbers is in none.
CREATE OR REPLACE MACRO anon._plan_match(cell, lookup) AS
    struct_pack(x := cell.x, c := cell.c, n := cell.n,
                b := CASE WHEN cell.c.is_number THEN CASE WHEN cell.n IS NOT NULL THEN cell.b END
                          WHEN cell.b < cell.c.first THEN NULL
                          WHEN cell.c.is_prefix THEN CASE WHEN starts_with(cell.t, lookup.texts[cell.b]) THEN cell.b END
                          WHEN lookup.texts[cell.b] = cell.t THEN cell.b END);
