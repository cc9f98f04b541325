-- anon._planned: the plan that Python fitted, with the column `released` (anon._released_types).
--     identifiers  a list of columns that look like direct identifiers; the plan is refused where there are some
-- needs: python
CREATE OR REPLACE MACRO anon._planned(
    caller, tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, identifiers
) AS TABLE
WITH _duckanon_grouped AS (
    FROM anon._classes(caller, anon._checked_plan(caller, k, beta, population, max_suppressed_fraction, tbl), cols,
                       'value')
)
SELECT _p.*, released
FROM (SELECT unnest(_anon_plan(
          caller, anon._pack(caller, '_duckanon_grouped', list_append(cols, '_duckanon_size'), NULL), cols, k, beta, population,
          weights, (SELECT list(_h) FROM anon._hierarchies(caller, hierarchies) AS _h), methods, max_suppressed_fraction,
          identifiers, (FROM anon._unfit(tbl, cols))),
          max_depth := 2)) AS _p
     LEFT JOIN anon._released_types(tbl, cols) ON true;
