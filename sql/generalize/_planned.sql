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
SELECT _plan.*, released
FROM (SELECT unnest(_anon_plan(
          anon._pack(caller, '_duckanon_grouped', list_append(cols, '_duckanon_size'), NULL),
          {'caller': caller, 'cols': cols, 'k': k, 'beta': beta, 'population': population, 'weights': weights,
           'hierarchies': (SELECT list(_trees) FROM anon._hierarchies(caller, hierarchies) AS _trees),
           'methods': methods, 'max_suppressed_fraction': max_suppressed_fraction, 'identifiers': identifiers,
           'unfit': (FROM anon._unfit(tbl, cols))}), max_depth := 2)) AS _plan
     LEFT JOIN anon._released_types(tbl, cols) ON true;
