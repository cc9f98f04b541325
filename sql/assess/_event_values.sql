-- anon._event_values: the sensitive values of the people of a table as texts, NULL where the table has no such column.
-- Values that are written alike count as one, which can only raise the share of a value.
CREATE OR REPLACE MACRO anon._event_values(tbl, person, sensitive) AS TABLE
SELECT DISTINCT COLUMNS([person]) AS whose,
       coalesce(UNPACK(CAST(COLUMNS(lambda name: name = '_duckanon_none' OR lower(name) = lower(sensitive))
                            AS VARCHAR))) AS told
FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM query_table(tbl));
