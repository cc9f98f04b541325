-- anon._event_people: the people of a table, with the columns of their class as a struct.
CREATE OR REPLACE MACRO anon._event_people(tbl, person, class) AS TABLE
SELECT DISTINCT COLUMNS([person]) AS whose,
       row(UNPACK(COLUMNS(lambda name: name = '_duckanon_none' OR anon._is_among(name, class)))) AS kind
FROM (SELECT *, NULL::VARCHAR AS _duckanon_none FROM query_table(tbl));
