-- anon._hierarchy: one hierarchy table, whatever its columns are called: one row per leaf, the labels of its levels as
-- a list, the leaf itself first. A leaf may have several rows if they are equal, as where the table was made of data;
-- it is not quoted where they are not, since it is a value of the data then.
CREATE OR REPLACE MACRO anon._hierarchy(caller, column_name, hierarchy) AS TABLE
WITH _duckanon_paths AS MATERIALIZED (
    SELECT [UNPACK(CAST(COLUMNS(*) AS VARCHAR))] AS labels FROM query_table(hierarchy)
)
SELECT column_name AS column_name, labels
FROM _duckanon_paths
WHERE (SELECT CASE WHEN count(*) = 0 THEN true
                   ELSE error(concat(caller, ': the hierarchy of column "', column_name, '" must give each value one ',
                                     'label of each level; got ', count(*), ' with several.')) END
       FROM (FROM _duckanon_paths SELECT labels[1] GROUP BY labels[1] HAVING count(DISTINCT labels) > 1));
