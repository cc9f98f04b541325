-- anon._or_none: the name of a column, or of the one that stands in for it where none was named.
CREATE OR REPLACE MACRO anon._or_none(col) AS coalesce(CAST(col AS VARCHAR), '_duckanon_none');
