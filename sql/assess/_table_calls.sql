-- anon._table_calls: a statement that calls a macro for each of several tables and puts the rows below each other, for
-- query().
--     further    for each table, the other arguments as they are written in SQL
--     separator  what stands between the calls, such as ' UNION ALL '
CREATE OR REPLACE MACRO anon._table_calls(function_name, tables, further, separator) AS
    anon._joined(list_transform(range(1, 1 + len(TRY_CAST(tables AS VARCHAR[]))), lambda place:
        'FROM anon.' || function_name || '(' || anon._quoted(TRY_CAST(tables AS VARCHAR[])[place])
            || further[place] || ')'), separator);
