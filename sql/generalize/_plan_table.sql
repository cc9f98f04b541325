-- anon._plan_table: a stored plan (anon.plan), or the sentence that a table is none. The empty rows bring the columns
-- that it may not have, since a query's columns are bound before any sentence is said.
CREATE OR REPLACE MACRO anon._plan_table(caller, plan) AS TABLE
SELECT * REPLACE (CAST(column_name AS VARCHAR) AS column_name, CAST(covers AS VARCHAR) AS covers,
                  CAST(label AS VARCHAR) AS label, TRY_CAST(CAST("rows" AS VARCHAR) AS BIGINT) AS "rows",
                  TRY_CAST(CAST(allowed AS VARCHAR) AS BIGINT) AS allowed)
FROM (FROM (SELECT NULL AS column_name, NULL AS method, NULL AS covers, NULL AS lower, NULL AS upper, NULL AS label,
                   NULL AS "rows", NULL AS allowed, NULL AS released LIMIT 0)
      UNION ALL BY NAME
      FROM query_table(anon._checked_table(caller, 'plan', plan, CAST(plan AS VARCHAR))))
WHERE anon._unless((SELECT anon._lacking(caller, 'plan', 'a plan, as anon.plan makes it', list(column_name),
                                         ['column_name', 'covers', 'lower', 'upper', 'label', 'rows'])
                    FROM anon._columns(CAST(plan AS VARCHAR))));
