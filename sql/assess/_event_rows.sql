-- anon._event_rows: the rows of one of several linked tables: whose they are, and the number of their label among the
-- labels of this table. Labels are numbered, never hashed: two labels that meet would hide a violation. A column of
-- ours lets a table have none of the columns: then all its rows have one label.
--     part  place of the table among the tables
--     most  rows of this table that somebody may know
CREATE OR REPLACE MACRO anon._event_rows(tbl, person, cols, part, most) AS TABLE
WITH _duckanon_cells AS (
    SELECT COLUMNS([person]) AS whose,
           row(UNPACK(COLUMNS(lambda name: name = '_duckanon_none' OR anon._is_among(name, cols)))) AS label
    FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM query_table(tbl))
), _duckanon_numbers AS MATERIALIZED (
    SELECT label, row_number() OVER () AS number FROM (SELECT DISTINCT label FROM _duckanon_cells)
)
SELECT part AS part, most AS most, whose, number FROM _duckanon_cells JOIN _duckanon_numbers USING (label);
