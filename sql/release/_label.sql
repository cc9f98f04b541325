-- anon._label: the label that a row has in a column, as a text, with the name of the column.
CREATE OR REPLACE MACRO anon._label(value, name) AS
    {'name': lower(name), 'label': CAST(value AS VARCHAR)};
