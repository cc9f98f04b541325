-- anon._plan_start: a cell, a struct of a value and what its bucket is looked up by: `number` or `text`, whichever the
-- plan goes by. Where all prefixes of a plan have one length, the text is cut to it. (The casts stand outside the CASE:
-- inside it DuckDB computes them for every row.)
CREATE OR REPLACE MACRO anon._plan_start(value, is_number, is_text, letters) AS
    struct_pack(value := value,
                number := anon._plan_number(CASE WHEN is_number THEN value END),
                "text" := CASE WHEN letters IS NULL THEN CAST(CASE WHEN is_text THEN value END AS VARCHAR)
                               ELSE left(CAST(CASE WHEN is_text THEN value END AS VARCHAR), letters) END);
