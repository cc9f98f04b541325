-- anon._cell_text: a cell of a release as the label that it is: an interval STRUCT(lo, hi), as anon.boxes makes them,
-- is '[lo, hi]', or '>=lo', '<=hi' and '*' where ends are missing; a list of texts is the set of them
-- (anon._list_text); everything else is its text. The detour by text lets it be bound for cells that are no lists.
CREATE OR REPLACE MACRO anon._cell_text(cell) AS
    CASE WHEN starts_with(typeof(cell), 'STRUCT(lo ')
              THEN regexp_replace(regexp_replace(regexp_replace(
                       regexp_replace(CAST(cell AS VARCHAR), '^\{''lo'': ''?(.*?)''?, ''hi'': ''?(.*?)''?\}$',
                                      '[\1, \2]'),
                       '^\[NULL, NULL\]$', '*'), '^\[NULL, (.*)\]$', '<=\1'), '^\[(.*), NULL\]$', '>=\1')
         WHEN typeof(cell) = 'VARCHAR[]' THEN anon._list_text(TRY_CAST(CAST(cell AS VARCHAR) AS VARCHAR[]))
         ELSE CAST(cell AS VARCHAR) END;
