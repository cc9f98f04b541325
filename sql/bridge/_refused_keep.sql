-- anon._refused_keep: the sentence that refuses columns to keep which cannot be released, NULL where all can: names
-- that the table does not have; columns that release makes itself; and with ['*'] those whose values, though not their
-- names, look like identifiers, since which columns are released is settled before any value is read.
--     caller  the function that the sentence begins with; NULL: Python will name it
--     cols    the columns that are released in another form
-- Which steps are read is known when the query is bound; the others leave no trace in the plan.
CREATE OR REPLACE MACRO anon._refused_keep(caller, tbl, cols, keep, person) AS TABLE
WITH _duckanon_named AS (
    SELECT unnest(TRY_CAST(keep AS VARCHAR[])) AS name
), _duckanon_known AS (
    SELECT place, column_name AS name FROM anon._columns(tbl)
), _duckanon_by_values AS (
    SELECT 3 AS rank, place, 'column "' || name || '" looks like an identifier by its values (' || category
                             || '); name the columns to keep one by one.' AS sentence
    FROM _duckanon_known JOIN anon.direct_identifiers(tbl) ON name = column_name
    WHERE NOT anon._is_among(name, keep) AND anon._is_kept(name, cols, keep, person)
), _duckanon_not_asked AS (
    SELECT 3 AS rank, NULL::BIGINT AS place, NULL::VARCHAR AS sentence LIMIT 0
), _duckanon_problems AS (
    SELECT 1 AS rank, 0 AS place, 'keep must name columns of the table; got "' || name || '"'
           || coalesce('; did you mean "'
                       || list_filter(list_sort(list_transform((SELECT list(name) FROM _duckanon_known), lambda other:
                              {'distance': damerau_levenshtein(lower(name), lower(other)), 'name': other}),
                              'ASC', 'NULLS LAST'), lambda near: near['distance'] <= 1 + len(name) // 4)[1]['name']
                       || '"?', '.') AS sentence
    FROM _duckanon_named
    WHERE name <> '*' AND lower(name) NOT IN (SELECT lower(name) FROM _duckanon_known)
    UNION ALL
    SELECT 2, 0, 'keep must not name a column of cols; got "' || name || '".'
    FROM _duckanon_named WHERE anon._is_among(name, cols)
    UNION ALL
    FROM query_table(CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*') THEN '_duckanon_by_values'
                          ELSE '_duckanon_not_asked' END)
), _duckanon_refusal AS (
    SELECT coalesce(caller || ': ', '') || arg_min(sentence, row(rank, place)) AS sentence FROM _duckanon_problems
), _duckanon_no_refusal AS (
    SELECT NULL::VARCHAR AS sentence
)
FROM query_table(CASE WHEN keep IS NULL THEN '_duckanon_no_refusal' ELSE '_duckanon_refusal' END);
