-- anon._checked_event_people: true where every name is a column and every event somebody's; refuses otherwise.
--     nobodys    rows whose person is NULL
--     repeated   rows of `people` beyond the first of each person, or people whose class differs between rows
--     strangers  rows of people whom `people` does not have
CREATE OR REPLACE MACRO anon._checked_event_people(caller, tables, cols, class, people, sensitive, nobodys, repeated,
                                                   strangers) AS
    CASE WHEN nobodys > 0
              THEN error(caller || ': person must say whose row it is in every row; got ' || nobodys
                         || ' rows in which it is NULL.')
         WHEN repeated > 0
              THEN error(caller || ': class must be the same in all rows of a person; got ' || repeated
                         || ' rows that differ.')
         WHEN strangers > 0
              THEN error(caller || ': people must have every person of the tables; got ' || strangers
                         || ' rows of others.')
         ELSE (SELECT coalesce(bool_and(CASE WHEN anon._is_among(wanted, names) THEN true
                                    ELSE error(caller || ': column "' || wanted || '" does not exist in any of the '
                                               || 'tables.') END), true)
               FROM (SELECT unnest(list_concat(list_concat(TRY_CAST(cols AS VARCHAR[]),
                                                           coalesce(TRY_CAST(class AS VARCHAR[]), [])),
                                               CASE WHEN sensitive IS NULL THEN []
                                                    ELSE [CAST(sensitive AS VARCHAR)] END)) AS wanted),
                    (SELECT list(column_name) AS names
                     FROM query(anon._table_calls('_columns',
                         list_concat(TRY_CAST(tables AS VARCHAR[]), [people::VARCHAR]),
                         list_transform(list_concat(TRY_CAST(tables AS VARCHAR[]), [people::VARCHAR]), lambda one: ''),
                         ' UNION ALL '))))
         END;
