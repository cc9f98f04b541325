-- anon._is_kept: whether a column that a release does not change is released with it: one that `keep` names, or with
-- ['*'] every one whose name does not say that it identifies people. `_duckanon_none` always is: DuckDB answers a
-- choice of no column with a message of its own. Only for ['*'] there are rules in the list to be looked at: DuckDB
-- would read the rules' patterns in vain, which took a third of the time in which anon.generalize was bound.
--     keep    names of columns; NULL: none
--     person  the column that says whose row it is, which '*' does not mean; NULL: none
CREATE OR REPLACE MACRO anon._is_kept(column_name, cols, keep, person) AS
    column_name = '_duckanon_none'
    OR (NOT anon._is_among(column_name, cols)
        AND (anon._is_among(column_name, coalesce(keep, []))
             OR (list_contains(coalesce(TRY_CAST(keep AS VARCHAR[]), []), '*')
                 AND NOT anon._is_among(column_name, [person])
                 AND len(list_filter(CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*')
                                               THEN anon._identifier_rule_list() ELSE [] END, lambda rule:
                         anon._named_like(anon._plain_name(column_name), rule[4], rule[5]))) = 0)));
