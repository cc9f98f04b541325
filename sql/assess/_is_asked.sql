-- anon._is_asked: whether a column belongs to those that were asked for; NULL asks for all but the one that says whose
-- a row is. The column that the caller adds as _duckanon_person always belongs to them: DuckDB answers a choice of no
-- column with a message of its own, where Python can say which name was wrong.
CREATE OR REPLACE MACRO anon._is_asked(column_name, cols, person) AS
    column_name = '_duckanon_person'
    OR (cols IS NULL AND (person IS NULL OR lower(column_name) <> lower(CAST(person AS VARCHAR))))
    OR anon._is_among(column_name, cols);
