-- anon._checked_events: passes `result`, a list of tables, on after a look at the arguments that functions on linked
-- tables take. It is used inside query(), which is bound first.
CREATE OR REPLACE MACRO anon._checked_events(caller, tables, person, cols, known, class, people, k, sensitive,
                                                result) AS
    CASE WHEN NOT regexp_full_match(typeof(tables), 'VARCHAR\[\d*\]') OR len(TRY_CAST(tables AS VARCHAR[])) = 0
              OR len(list_distinct(TRY_CAST(tables AS VARCHAR[]))) < len(TRY_CAST(tables AS VARCHAR[]))
              THEN error(anon._must_be(caller, 'tables', 'a list of tables such as [''visits'', ''labs''], each once',
                                       tables))
         WHEN len(list_filter(TRY_CAST(tables AS VARCHAR[]), lambda one: anon._is_own_name(one))) > 0
              THEN error(anon._must_be(caller, 'tables', 'tables whose names do not begin with _duckanon_', tables))
         WHEN people IS NOT NULL AND typeof(people) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'people', 'NULL or the name of a table, a view or a CTE, in quotes',
                                       people))
         WHEN sensitive IS NOT NULL AND typeof(sensitive) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'sensitive', 'NULL or the name of one column, in quotes', sensitive))
         WHEN anon._is_among(TRY_CAST(person AS VARCHAR), cols) OR anon._is_among(TRY_CAST(person AS VARCHAR), class)
              THEN error(caller || ': person must be none of cols and class; got ' || CAST(person AS VARCHAR) || '.')
         WHEN len(list_filter(TRY_CAST(class AS VARCHAR[]), lambda one: anon._is_among(one, cols))) > 0
              THEN error(caller || ': class must name none of cols; got ' || CAST(class AS VARCHAR) || '.')
         WHEN CASE WHEN starts_with(typeof(known), 'MAP(')
                   THEN list_sort(map_keys(TRY_CAST(known AS MAP(VARCHAR, BIGINT))), 'ASC', 'NULLS LAST')
                        <> list_sort(TRY_CAST(tables AS VARCHAR[]), 'ASC', 'NULLS LAST')
                        OR coalesce(len(list_filter(map_values(TRY_CAST(known AS MAP(VARCHAR, BIGINT))),
                                                    lambda most: most BETWEEN 0 AND 4)), 0)
                           < len(TRY_CAST(tables AS VARCHAR[]))
                   ELSE NOT coalesce(regexp_full_match(CAST(known AS VARCHAR), '[0-4]'), false) END
              THEN error(anon._must_be(caller, 'known', 'a whole number from 0 to 4, or a map that has one for each of '
                                                        || 'tables such as MAP {''visits'': 2, ''labs'': 0}', known))
         ELSE anon._checked_name(caller, 'person', 'one column', person,
                  anon._checked_table(caller, 'people',
                                      coalesce(CAST(people AS VARCHAR), TRY_CAST(tables AS VARCHAR[])[1]),
                      anon._checked_keep(caller, 'cols', cols,
                          anon._checked_keep(caller, 'class', class,
                              anon._checked_whole(caller, 'k', k, 2, result))))) END;
