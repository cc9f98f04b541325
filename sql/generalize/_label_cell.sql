-- anon._label_cell: what a number or a unit of the calendar covers: from, up to, and whether the end belongs to it.
CREATE OR REPLACE MACRO anon._label_cell(cell, kind) AS
    CASE WHEN kind = 'date' THEN anon._calendar_cell(cell)
         WHEN isfinite(TRY_CAST(cell AS DOUBLE))
         THEN {'lower': TRY_CAST(cell AS DOUBLE), 'upper': TRY_CAST(cell AS DOUBLE), 'closed': true} END;
