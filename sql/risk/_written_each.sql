-- anon._written_each: a piece of SQL for each of some columns, for statements that are put together for query(). It is
-- SQL for other arguments too: those are refused where the statement is bound.
--     piece      @ stands for the column's name, in quotes, # for its number among `cols`
--     separator  what stands between the pieces, such as ', '
CREATE OR REPLACE MACRO anon._written_each(cols, piece, separator) AS
    anon._joined(list_transform(range(1, 1 + greatest(1, coalesce(len(TRY_CAST(cols AS VARCHAR[])), 0))), lambda place:
        replace(replace(piece, '#', CAST(place AS VARCHAR)), '@',
                anon._identifier(coalesce(nullif(TRY_CAST(cols AS VARCHAR[])[place], ''), ' ')))), separator);
