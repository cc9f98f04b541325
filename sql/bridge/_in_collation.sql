-- anon._in_collation: a text with the collation of a column.
CREATE OR REPLACE MACRO anon._in_collation("text", value) AS CASE WHEN true THEN "text" ELSE CAST(value AS VARCHAR) END;
