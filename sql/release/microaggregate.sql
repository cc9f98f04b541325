-- anon.microaggregate: a table whose columns `cols`, numbers and dates, become what groups of at least `k` similar
-- records have in common. Of all other columns those in `keep` are released as they are, but for ENUMs, which become
-- VARCHAR.
--     method  'mdav': the maximum distance to average vector, exactly; the time grows with the square of the rows.
--             'fast': MDAV within parts of the table, then moves and swaps between neighbouring groups and groups grown
--             anew: less is lost, and the time grows with the rows
--     label   'mean': the mean of a group's people, a DOUBLE where the column holds numbers. 'median': the mean of
--             those in the middle, of half of k and at least three people, as a median is one person's own value.
--             'interval': a STRUCT(lo, hi) as of anon.boxes, with the group's number in `box`; its ends belong to
--             parts of the column that at least k people share
--     by      columns of labels that are released as they are, as in anon.boxes: each group has one label in each
--     person  a column that tells whose each row is, none of `cols`: each group then holds at least k different people,
--             and each of them counts once in the mean; a row without one counts as nobody's, and the column is
--             released only if it is kept. NULL: each row is another person
--     keep, narrowing  other columns to release as they are, as in anon.generalize; NULL: none
-- Columns are divided by their standard deviations before distances are taken. That each group has k people is counted
-- before the rows are returned, in random order. The groups are the same for the same table.
--     (MDAV; Domingo-Ferrer and Torra 2005)
-- test: tests/release/microaggregate.test
-- needs: python
CREATE OR REPLACE MACRO anon.microaggregate(
    tbl, cols, k, method := 'mdav', label := 'mean', by := NULL, person := NULL, keep := NULL, narrowing := NULL
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(lambda name: anon._is_among(name, cols) OR anon._is_kept(name, cols, keep, person)
                                OR anon._is_among(name, [person]) OR anon._is_among(name, coalesce("by", [])))
    FROM query_table(anon._checked_groups_of('anon.microaggregate', k, method, label,
                         anon._checked_person('anon.microaggregate', person, cols,
                             anon._checked_keep('anon.microaggregate', 'keep', keep,
                                 anon._checked_keep('anon.microaggregate', 'narrowing', narrowing,
                                     anon._checked_keep('anon.microaggregate', 'by', "by",
                                         anon._checked('anon.microaggregate', tbl, cols)))))))
), _duckanon_result AS MATERIALIZED (
    SELECT anon._run_microaggregate(anon._pack_all('anon.microaggregate', '"_duckanon_chosen"', cols),
                                    {'cols': cols, 'k': k, 'method': method, 'label': label, 'person': person,
                                     'keeps_person': anon._is_among(CAST(person AS VARCHAR), coalesce(keep, [])),
                                     'by': TRY_CAST("by" AS VARCHAR[]),
                                     'narrowing': TRY_CAST(narrowing AS VARCHAR[]),
                                     'refused': (SELECT sentence
                                                 FROM anon._refused_keep(NULL, tbl, cols, keep, person))}) AS result
), _duckanon_intervals AS (
    FROM anon._unpack_boxes((SELECT result FROM _duckanon_result), '"_duckanon_chosen"', cols,
                            list_concat(TRY_CAST(keep AS VARCHAR[]), TRY_CAST("by" AS VARCHAR[])), person)
), _duckanon_values AS (
    FROM anon._unpack_means((SELECT result FROM _duckanon_result), '"_duckanon_chosen"', cols,
                            list_concat(TRY_CAST(keep AS VARCHAR[]), TRY_CAST("by" AS VARCHAR[])), person)
)
FROM query_table(CASE WHEN label = 'interval' THEN '"_duckanon_intervals"' ELSE '"_duckanon_values"' END);
COMMENT ON MACRO TABLE anon.microaggregate IS
    'Numbers and dates as the means, middles or intervals of groups of at least k similar records (MDAV and better).';
