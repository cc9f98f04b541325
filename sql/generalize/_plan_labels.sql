-- anon._plan_labels: the list of a plan's labels; the number of a label is its place, and 0 stands for no label. Labels
-- are told apart byte by byte: in a collation two that a reader can tell apart may be the same.
CREATE OR REPLACE MACRO anon._plan_labels(plan) AS TABLE
SELECT list(label ORDER BY encode(label) ASC NULLS LAST) AS labels
FROM (SELECT any_value(label) AS label FROM query_table(plan) WHERE label IS NOT NULL GROUP BY encode(label));
