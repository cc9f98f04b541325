-- anon._joined: texts behind each other, with a separator between them: DuckDB's array_to_string, which is a macro that
-- calls functions by names that a user's macros can take.
CREATE OR REPLACE MACRO anon._joined(texts, separator) AS
    CASE WHEN len(texts) = 0 THEN '' ELSE list_aggregate(CAST(texts AS VARCHAR[]), 'string_agg', separator) END;
