-- anon._recoded_label: a cell of a recoded table as text (anon._cell_text), with the name of its column.
CREATE OR REPLACE MACRO anon._recoded_label(cell, name) AS {'name': lower(name), 'label': anon._cell_text(cell)};
