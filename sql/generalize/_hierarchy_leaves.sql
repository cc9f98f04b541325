-- anon._hierarchy_leaves: which leaves each label of the hierarchies stands for, one row each.
--     names  name of a step: place and column_name of the columns
CREATE OR REPLACE MACRO anon._hierarchy_leaves(caller, hierarchies, names) AS TABLE
SELECT named.place, tree.leaf, tree.label
FROM anon._hierarchies(caller, hierarchies) AS tree
JOIN query_table(names) AS named ON tree.column_name = lower(named.column_name);
