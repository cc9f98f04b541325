-- anon._bound_types: a column `_duckanon_bound` without rows, whose type is that of the bounds of a partition: DOUBLE
-- for numbers and TIMESTAMP for dates, since a cut between two whole numbers or two days is neither; timestamps keep
-- their time zone.
CREATE OR REPLACE MACRO anon._bound_types(tbl, col) AS TABLE
SELECT struct_extract({'number': NULL::DOUBLE, 'time': NULL::TIMESTAMP, 'zoned': NULL::TIMESTAMPTZ},
                      CASE WHEN anon._type_of(_duckanon_value) = 'TIMESTAMP WITH TIME ZONE' THEN 'zoned'
                           WHEN anon._kind(anon._type_of(_duckanon_value)) = 'date' THEN 'time'
                           ELSE 'number' END) AS _duckanon_bound
FROM (SELECT COLUMNS([col]) AS _duckanon_value FROM query_table(tbl)) LIMIT 0;
