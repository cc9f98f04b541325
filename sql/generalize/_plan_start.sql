-- anon._plan_start: a cell with what its bucket is looked up by. A cell is a struct: `value`; `planned`, where the plan
-- keeps its column (NULL: not planned); `number` or `text`, whichever the plan goes by. (The casts stand outside the
-- CASE: inside it DuckDB computes them for every row.)
CREATE OR REPLACE MACRO anon._plan_start(cell) AS
    struct_pack(value := cell.value, planned := cell.planned,
                number := anon._plan_number(CASE WHEN cell.planned.is_number THEN cell.value END),
                "text" := CAST(CASE WHEN cell.planned.is_text THEN cell.value END AS VARCHAR));
