-- anon._cell_lists: the different combinations of cells of a table, as texts in the order of `cols`, with their number
-- of rows.
CREATE OR REPLACE MACRO anon._cell_lists(caller, tbl, cols) AS TABLE
SELECT list_transform(cols, lambda named: row_cells[list_position(row_names, lower(named))]) AS cells, size
FROM (SELECT [UNPACK(anon._cell_text(COLUMNS(cols)))] AS row_cells,
             any_value([UNPACK(lower(alias(COLUMNS(cols))))]) AS row_names, count(*) AS size
      FROM query_table(tbl) WHERE anon._uncollated(caller, COLUMNS(cols)) GROUP BY row_cells);
