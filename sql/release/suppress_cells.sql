-- anon.suppress_cells: a table in which as few cells of `cols` as possible become NULL, so that every record agrees
-- with those of at least `k` - 1 other people. Of all other columns those in `keep` are released as they are, but for
-- ENUMs, which become VARCHAR.
--     importance  columns of `cols`, the most important first: of several ways with as few cells the one that costs the
--                 least important columns is taken. Columns that are not named matter less, those of more values less
--                 than those of few. NULL: none is named
--     nulls   'any': NULL agrees with anything. At least k people of `tbl` agree with what each released record still
--             tells; so do as many released records. NULLs that other records get do not count, or k - 1 records of
--             nothing but NULLs would do. 'value': NULL is a value of its own, and each released record is that of at
--             least k people, NULLs included: anon.k_anonymity counts k
--     person  a column that tells whose each row is, none of `cols`; a row without one counts as nobody's, and the
--             column is released only if it is kept. NULL: each row is another person
--     keep, narrowing  other columns to release as they are, as in anon.generalize; NULL: none. One that tells what
--             the cells were, as an age group tells of an age, is refused unless it is in `narrowing`
-- The promise is counted before the rows are returned, in random order.
--     (sdcMicro's localSuppression and kAnon are the peers)
-- test: tests/release/suppress_cells.test
-- needs: python
CREATE OR REPLACE MACRO anon.suppress_cells(
    tbl, cols, k, importance := NULL, person := NULL, keep := NULL, nulls := 'any', narrowing := NULL
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(lambda name: anon._is_among(name, cols) OR anon._is_kept(name, cols, keep, person)
                                OR anon._is_among(name, [person]))
    FROM query_table(anon._checked_whole('anon.suppress_cells', 'k', k, 2,
                         anon._checked_choice('anon.suppress_cells', 'nulls', nulls, ['any', 'value'],
                             anon._checked_person('anon.suppress_cells', person, cols,
                                 anon._checked_keep('anon.suppress_cells', 'keep', keep,
                                     anon._checked_keep('anon.suppress_cells', 'narrowing', narrowing,
                                         anon._checked_keep('anon.suppress_cells', 'importance', importance,
                                             anon._checked('anon.suppress_cells', tbl, cols))))))))
)
FROM anon._unpack_cells(anon._run_suppress_cells(anon._pack_all('anon.suppress_cells', '"_duckanon_chosen"', cols),
                                                 {'cols': cols, 'k': k, 'nulls': nulls, 'person': person,
                                                  'importance': TRY_CAST(importance AS VARCHAR[]),
                                                  'narrowing': TRY_CAST(narrowing AS VARCHAR[]),
                                                  'keeps_person': anon._is_among(CAST(person AS VARCHAR),
                                                                                 coalesce(keep, [])),
                                                  'refused': (SELECT sentence
                                                              FROM anon._refused_keep(NULL, tbl, cols, keep, person))}),
                        '"_duckanon_chosen"', cols, keep, person);
COMMENT ON MACRO TABLE anon.suppress_cells IS
    'Makes as few single cells as possible NULL, so that every record agrees with those of k - 1 other people.';
