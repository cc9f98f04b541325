-- anon._is_asked: whether a column belongs to those that were asked for; NULL asks for all. The NULL that the caller
-- adds as _duckanon_none always belongs to them: DuckDB answers a choice of no column with a message of its own, where
-- Python can say which name was wrong.
CREATE OR REPLACE MACRO anon._is_asked(column_name, cols) AS
    cols IS NULL OR column_name = '_duckanon_none' OR anon._is_among(column_name, cols);
