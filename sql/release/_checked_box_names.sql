-- anon._checked_box_names: true where no column of a table is called like one that the caller adds to them, an error
-- otherwise: nobody could tell the two apart.
--     cols  only these columns; NULL: all of them
CREATE OR REPLACE MACRO anon._checked_box_names(caller, tbl, cols, added) AS
    anon._unless((SELECT caller || ': the table has a column "' || any_value(column_name)
                         || '", a name that is needed for the boxes; rename it first.'
                  FROM anon._columns(tbl)
                  WHERE lower(column_name) = added AND (cols IS NULL OR anon._is_among(column_name, cols))
                  HAVING count(*) > 0));
