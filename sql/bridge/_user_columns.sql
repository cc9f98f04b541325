-- anon._user_columns: the columns of a table, for COLUMNS(anon._user_columns(*, caller, tbl)) where they travel along
-- beside columns of ours. One that is called as our own steps are would be taken for them: it is refused while the
-- query is bound, before DuckDB finds names that are ambiguous. Functions that call Python have the same
-- of _anon_choose.
--     tbl  the name of the table; the steps of ours are handed over in quotes, and may have such columns
-- error() is not allowed within COLUMNS; a cast that fails says the same (anon._refuse).
CREATE OR REPLACE MACRO anon._user_columns(columns, caller, tbl) AS
    list_filter(columns, lambda name:
        anon._refuse(['0', concat(caller, ': the table must not have a column that begins with _duckanon_; got ', name,
                                  ': rename it first.')
                     ][1 + CAST(anon._is_own_name(name) AND NOT anon._is_own_name(ltrim(tbl, '"')) AS INTEGER)]) = 0);
