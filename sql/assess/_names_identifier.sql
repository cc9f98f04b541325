-- anon._names_identifier: whether a column's name says that it identifies people, by the rules of
-- anon.direct_identifiers. It is known when a query is bound, so that it can choose columns.
CREATE OR REPLACE MACRO anon._names_identifier(column_name) AS
    len(list_filter(anon._identifier_rule_list(), lambda rule:
        anon._named_like(anon._plain_name(column_name), rule[4], rule[5]))) > 0;
