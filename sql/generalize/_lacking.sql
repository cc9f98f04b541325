-- anon._lacking: the sentence that a table is not what a parameter must name, since it lacks one of the columns that
-- are `needed`; NULL where it has all.
CREATE OR REPLACE MACRO anon._lacking(caller, parameter, must_be, names, needed) AS
    caller || ': ' || parameter || ' must name a table that is ' || must_be || '; got one without a column "'
    || list_filter(needed, lambda column_name: NOT anon._is_among(column_name, names))[1] || '".';
