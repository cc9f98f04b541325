-- anon._cells_query: the text of anon._cells.
--     columns, labels  the columns of the table, and their labels with those of margins
--     source           the call that gives the rows
--     sums             what is computed of the contributions to a cell
CREATE OR REPLACE MACRO anon._cells_query(columns, labels, source, sums, has_person) AS
    CASE WHEN has_person
         THEN 'SELECT ' || columns || ', system.main.count(_duckanon_person) AS _duckanon_people, ' || sums
              || ' FROM (SELECT ' || labels || ', _duckanon_person, '
              || 'system.main.fsum(_duckanon_value) AS _duckanon_value FROM ' || source
              || ' WHERE _duckanon_value IS NOT NULL GROUP BY _duckanon_person, CUBE (' || columns || ')) GROUP BY '
              || columns
         ELSE 'SELECT ' || labels || ', system.main.count(_duckanon_value) AS _duckanon_people, ' || sums || ' FROM '
              || source || ' WHERE _duckanon_value IS NOT NULL GROUP BY CUBE (' || columns || ')' END;
