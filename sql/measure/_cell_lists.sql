-- anon._cell_lists: the different combinations of cells of a table, as texts in the order of `cols`, with their number
-- of rows. The columns of a table come in its own order: they are put in that of `cols`.
CREATE OR REPLACE MACRO anon._cell_lists(tbl, cols) AS TABLE
SELECT list_transform(cols, lambda name: own_cells[list_position(own_names, lower(name))]) AS cells, size
FROM (SELECT [UNPACK(anon._cell_text(COLUMNS(cols)))] AS own_cells, any_value([UNPACK(lower(alias(COLUMNS(cols))))]) AS own_names,
             count(*) AS size
      FROM query_table(tbl) GROUP BY own_cells);
