-- anon._recoded: one recoded column of what Python returned, as a list: of intervals for numbers and dates, of lists of
-- values for all others. Which is known when the query is bound. Both are computed, and DuckDB 1.5 may crash where it
-- zips a list of texts with none: texts have no ends to zip.
CREATE OR REPLACE MACRO anon._recoded(released, name, col) AS
    struct_extract({'interval': list_transform(
                        list_zip(anon._slot(released,
                                            CASE WHEN anon._kind(typeof(col)) IN ('numeric', 'date') THEN name END,
                                            col),
                                 anon._slot(released, '_duckanon_hi ' || name, col)),
                        lambda ends: {'lo': ends[1], 'hi': ends[2]}),
                    'list': list_transform(anon._released(released, name).s, lambda written:
                        list_transform(string_split(written, chr(31)), lambda value: nullif(value, chr(30))))},
                   CASE WHEN anon._kind(typeof(col)) IN ('numeric', 'date') THEN 'interval' ELSE 'list' END);
