-- anon._intervals: a boxed table whose intervals are structs, whether it came so or with two columns x_lo and x_hi for
-- each (anon.flatten_boxes); those that were pairs come last. Names are known when the query is bound, where `*` within
-- COLUMNS() is the list of them. A pair of our own is there so that there is one, and is left out again.
--     tbl      the table as the caller has checked it
--     own_tbl  the same, unchecked: checks that are written twice are bound twice
CREATE OR REPLACE MACRO anon._intervals(caller, tbl, own_tbl) AS TABLE
WITH _duckanon_listed AS (
    SELECT list(lower(column_name)) AS names FROM anon._columns(own_tbl)
), _duckanon_source AS (
    SELECT COLUMNS(anon._user_columns(*, caller, own_tbl)), NULL AS _duckanon_none, NULL AS _duckanon_none_lo,
           NULL AS _duckanon_none_hi
    FROM query_table(tbl)
    WHERE anon._unless((SELECT caller || ': the table must not have a column "' || any_value(column_name)
                               || '" beside two with its ends, _lo and _hi; rename it first.'
                        FROM anon._columns(own_tbl), _duckanon_listed
                        WHERE list_contains(names, lower(column_name) || '_lo')
                          AND list_contains(names, lower(column_name) || '_hi')
                        HAVING count(*) > 0))
), _duckanon_rows AS (
    SELECT COLUMNS(anon._unpaired(list_filter(*, lambda each: true))),
           COLUMNS('(?is)^(' || anon._any_of(anon._pairs(list_filter(*, lambda each: true))) || ')_lo$')
               AS '_duckanon_lo \1',
           struct_pack(*COLUMNS('(?is)^(' || anon._any_of(anon._pairs(list_filter(*, lambda each: true))) || ')_hi$'))
               AS _duckanon_highs
    FROM _duckanon_source
), _duckanon_paired AS (
    SELECT COLUMNS(lambda name: name = '_duckanon_none' OR NOT starts_with(name, '_duckanon_')),
           struct_pack(low := COLUMNS('(?s)^_duckanon_lo (.*)$'),
                       high := struct_extract(_duckanon_highs, substr(
                                   anon._only_name(typeof(struct_pack(COLUMNS('(?s)^_duckanon_lo (.*)$')))),
                                   1 + len('_duckanon_lo ')) || '_hi')) AS '_duckanon_ends \1'
    FROM _duckanon_rows
), _duckanon_made AS (              -- in the type that holds both ends: a CSV file may have 1 and 2.5
    SELECT COLUMNS(lambda name: NOT starts_with(name, '_duckanon_ends ')),
           struct_pack(lo := CASE WHEN true THEN (COLUMNS('(?s)^_duckanon_ends (.*)$')).low
                                  ELSE (COLUMNS('(?s)^_duckanon_ends (.*)$')).high END,
                       hi := CASE WHEN true THEN (COLUMNS('(?s)^_duckanon_ends (.*)$')).high
                                  ELSE (COLUMNS('(?s)^_duckanon_ends (.*)$')).low END) AS '\1'
    FROM _duckanon_paired
)
SELECT COLUMNS(lambda name: NOT starts_with(name, '_duckanon_none')) FROM _duckanon_made;
