-- anon._cell_label: a value of a table's column as the label of its cells: itself, or in quotation marks where it could
-- be read as the label of a margin, Total (duckanon/_core/common/labels.py).
CREATE OR REPLACE MACRO anon._cell_label(value) AS
    CASE WHEN regexp_full_match(value, '(\{"+)*Total("+\})*') THEN '{"' || replace(value, '"', '""') || '"}'
         ELSE value END;
