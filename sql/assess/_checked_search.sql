-- anon._checked_search: the name of the table, after a look at the arguments of a search over column sets; cols may be
-- NULL, for all columns.
CREATE OR REPLACE MACRO anon._checked_search(caller, tbl, cols, max_size, alpha, person) AS
    anon._checked_open_fraction(caller, 'alpha', alpha, anon._checked_whole(caller, 'max_size', max_size, 1,
        anon._checked_person(caller, person, cols,
            CASE WHEN cols IS NULL THEN anon._checked(caller, tbl, ['*'])
                 ELSE anon._checked_apart(caller, cols, ['_duckanon_person'], anon._checked(caller, tbl, cols)) END)));
