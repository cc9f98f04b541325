-- anon._intervals: a boxed table whose intervals are structs, whether it came so or with two columns x_lo and x_hi for
-- each (anon.flatten_boxes); those that were pairs come last. Names are known when the query is bound, where `*` within
-- COLUMNS() is the list of them. A pair of our own is there so that there is one, and is left out again.
--     tbl      the table as the caller has checked it
--     own_tbl  the same, unchecked: checks that are written twice are bound twice
CREATE OR REPLACE MACRO anon._intervals(caller, tbl, own_tbl) AS TABLE
WITH _duckanon_source AS (
    SELECT *, NULL AS _duckanon_none, NULL AS _duckanon_none_lo, NULL AS _duckanon_none_hi FROM query_table(tbl)
    WHERE anon._unless((SELECT sentence FROM anon._refused_pairs(caller, own_tbl)))
), _duckanon_rows AS (
    SELECT COLUMNS(anon._unpaired(list_filter(*, lambda each: true))),
           COLUMNS('(?is)^(' || anon._any_of(anon._pairs(list_filter(*, lambda each: true))) || ')_lo$')
               AS '_duckanon_lo \1',
           struct_pack(*COLUMNS('(?is)^(' || anon._any_of(anon._pairs(list_filter(*, lambda each: true))) || ')_hi$'))
               AS _duckanon_highs
    FROM _duckanon_source
), _duckanon_made AS (
    SELECT COLUMNS(lambda name: name = '_duckanon_none' OR NOT starts_with(name, '_duckanon_')),
           anon._interval_of(COLUMNS('(?s)^_duckanon_lo (.*)$'),
                             struct_extract(_duckanon_highs, anon._high_name(typeof(struct_pack(
                                 COLUMNS('(?s)^_duckanon_lo (.*)$')))))) AS '\1'
    FROM _duckanon_rows
)
SELECT COLUMNS(lambda name: NOT starts_with(name, '_duckanon_none')) FROM _duckanon_made;
