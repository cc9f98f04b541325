-- anon._person_classes: who is in which class: one row per class and person, with that person's number of rows there.
-- Grouping first by class and person and then by class is as fast as count(DISTINCT person), and counts the rows too.
--     _duckanon_person  the 64-bit hash of the person's value, NULL where it is NULL: two people with the same hash,
--                       one pair in 2^64, count as one, so that a class may seem smaller than it is but never larger
CREATE OR REPLACE MACRO anon._person_classes(caller, tbl, cols, nulls, person) AS TABLE
SELECT COLUMNS(cols), CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END AS _duckanon_person,
       count(*) AS _duckanon_rows
FROM query_table(anon._checked_person(caller, person, cols, anon._checked_groups(caller, tbl, cols, nulls)))
WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL) AND anon._uncollated(caller, COLUMNS(cols))
GROUP BY ALL;
