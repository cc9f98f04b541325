-- anon._release_shape: the chosen columns of a table without rows, in the types in which a release has them: the
-- table's own, but VARCHAR where a type lists values. An ENUM names all its values, also those that no released row
-- has; nested types of ENUMs cannot be released at all, and an empty release must not list their values either.
-- Nor can UNIONs and VARIANTs (anon._tickets), to which the lists of anon._slot could not even be cast; neither could
-- they to the type of a column that is NULL and nothing else.
--     chosen  what COLUMNS() takes: a list of names, or '' for all columns
-- A field of a struct is taken by its name when the query is bound, so that its type alone is the result.
CREATE OR REPLACE MACRO anon._release_shape(tbl, chosen) AS TABLE
SELECT struct_extract({'as_text': NULL::VARCHAR, 'as_it_is': COLUMNS(chosen)},
                      CASE WHEN regexp_matches(anon._type_of(COLUMNS(chosen)), '(ENUM|UNION)\(|VARIANT|^"NULL"$')
                                THEN 'as_text'
                           ELSE 'as_it_is' END)
FROM query_table(tbl) LIMIT 0;
