-- anon._class_names: the values of some classes, as one struct: structs compare NULL with NULL as equal. The columns
-- are read here and nowhere else, so that no step of a check can be taken for one of them. The table is read a second
-- time, so a view that is drawn anew each time may have lost a class: whoever joins the names keeps what has none.
--     wanted  name of a step with the hashes of the classes, as anon._sensitive_members has them
CREATE OR REPLACE MACRO anon._class_names(tbl, cols, nulls, wanted) AS TABLE
SELECT class, any_value(named) AS named
FROM (SELECT hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS class, struct_pack(*COLUMNS(cols)) AS named
      FROM query_table(tbl) WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
WHERE class IN (SELECT class FROM query_table(wanted))
GROUP BY class;
