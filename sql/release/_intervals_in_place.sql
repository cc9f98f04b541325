-- anon._intervals_in_place: like anon._intervals, with every interval where its columns were: the union with nothing
-- puts the columns in order, since names are known when the query is bound.
CREATE OR REPLACE MACRO anon._intervals_in_place(caller, tbl, own_tbl) AS TABLE
WITH _duckanon_ordered AS (
    SELECT struct_extract(
               {'name': NULL,
                'value': COLUMNS('(?is)^(?:(' || anon._any_of(anon._pairs(list_filter(*, lambda each: true)))
                                 || ')_lo|(' || anon._any_of(anon._unpaired(list_filter(*, lambda each: true)))
                                 || '))$')}, 'name') AS '\1\2'
    FROM query_table(tbl)
)
SELECT * FROM _duckanon_ordered WHERE false
UNION ALL BY NAME
FROM anon._intervals(caller, tbl, own_tbl);
