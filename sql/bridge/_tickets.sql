-- anon._tickets: the chosen columns of a table, handed over to Python. The rows are collected there block by block
-- while the table is scanned; what travels through the query is the number of this call, as a list of tickets, which
-- is NULL where no row came.
--     chosen     what COLUMNS() takes: a list of names, or '' for all columns
--     seed       where one is given the rows are put into an order that depends on their values alone (by their hash),
--                since a parallel scan delivers them in any order and a seed promises the same release each time
--     is_wanted  false: no row is collected
--     coded      columns that have no say in this order: what is to be coded of one row moves no other; NULL: none
--     caller     the function that a refusal names
--     is_release  true: it releases all these columns, and refuses a TIME WITH TIME ZONE: Arrow has no such type,
--                and the zone would be lost on the way
-- Arrow ends the program at a UNION in a NULL struct, and has no VARIANT: neither gets that far.
-- needs: python
CREATE OR REPLACE MACRO anon._tickets(tbl, chosen, seed, is_wanted, coded := NULL, caller := 'anon',
                                          is_release := false) AS (
    WITH _duckanon_call AS MATERIALIZED (
        FROM anon._call()
    ), _duckanon_by_all AS NOT MATERIALIZED (
        SELECT record, hash(record) AS place
        FROM (SELECT struct_pack(*COLUMNS(chosen)) AS record FROM query_table(tbl) WHERE is_wanted)
    ), _duckanon_by_others AS NOT MATERIALIZED (
        SELECT struct_pack(*COLUMNS(chosen)) AS record,
               hash(*COLUMNS(coalesce(nullif(list_filter(*, lambda name: NOT anon._is_among(name, coded)), []), *)))
                   AS place
        FROM query_table(tbl) WHERE is_wanted
    )
    SELECT list(ticket) FILTER (ticket IS NOT NULL)
    FROM (SELECT CASE WHEN regexp_matches(typeof(record), ' UNION\(| VARIANT[,)\[]')
                           THEN error(caller || ': a column of type UNION or VARIANT cannot be worked on; leave it '
                                      || 'out, or cast it to VARCHAR first.')
                      WHEN is_release AND contains(typeof(record), ' TIME WITH TIME ZONE')
                           THEN error(caller || ': column "' || regexp_replace(regexp_extract(typeof(record),
                                      '(?:\(|, )("(?:[^"]|"")*"|[^ ,"]+) TIME WITH TIME ZONE', 1), '^"|"$', '', 'g')
                                      || '" is of type TIME WITH TIME ZONE, which cannot be released; cast it to '
                                      || 'VARCHAR first.')
                      WHEN seed IS NULL THEN _anon_park(record, call)
                      ELSE _anon_park(record, call, place) END AS ticket
          FROM query_table(CASE WHEN coded IS NULL THEN '_duckanon_by_all' ELSE '_duckanon_by_others' END),
               _duckanon_call));
