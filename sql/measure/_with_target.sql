-- anon._with_target: the columns, and the one to predict, which may be among them.
CREATE OR REPLACE MACRO anon._with_target(cols, target) AS
    list_concat(list_filter(TRY_CAST(cols AS VARCHAR[]),
                            lambda column_name: lower(column_name) <> lower(CAST(target AS VARCHAR))),
                [CAST(target AS VARCHAR)]);
