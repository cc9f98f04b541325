-- anon.functions: the functions of duckanon, each with its parameters, their defaults and a line of description. DuckDB
-- does not keep a macro's defaults, so the signatures come from anon._signatures, a table that is made from these files
-- whenever they are loaded.
-- promises: InvariantUnder()
-- test: tests/catalog/functions.test
CREATE OR REPLACE MACRO anon.functions() AS TABLE
SELECT 'anon.' || function_name AS name, stage, parameters, comment AS description
FROM anon._signatures
JOIN (SELECT DISTINCT function_name, comment FROM duckdb_functions() WHERE database_name = 'anon') USING (function_name)
ORDER BY stage_place ASC NULLS LAST, function_name ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.functions IS
    'The functions of duckanon: name, stage, parameters with their defaults, description.';
