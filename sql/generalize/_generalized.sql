-- anon._generalized: the body of anon.generalize. What was promised is counted on the rows that are returned; they come
-- in random order, since the old order may tell what was taken away.
-- Which of several steps is read is known when the query is bound; the others are not even bound.
-- needs: python
CREATE OR REPLACE MACRO anon._generalized(
    tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, keep, narrowing, person,
    sensitive, l, l_kind, c, t
) AS TABLE
WITH _duckanon_nothing AS (
    SELECT NULL::VARCHAR AS sentence
), _duckanon_refused AS (
    FROM anon._refused_keep(NULL, tbl, cols, keep, person)
), _duckanon_plan AS MATERIALIZED (
    FROM anon._planned(tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, person,
                       sensitive, l, l_kind, c, t, caller := 'anon.generalize',
                       refused := (FROM query_table(CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*')
                                                         THEN '_duckanon_refused' ELSE '_duckanon_nothing' END)))
), _duckanon_wanted AS NOT MATERIALIZED (
    FROM anon._wanted_columns('anon.generalize', tbl, cols, keep, person, sensitive)
), _duckanon_packed AS NOT MATERIALIZED (                       -- each column that is labelled costs time
    SELECT unnest(_duckanon_cols),
           struct_pack(person := _duckanon_person, sensitive := _duckanon_sensitive,
                       kept := struct_pack(*COLUMNS(* EXCLUDE (_duckanon_cols, _duckanon_person, _duckanon_sensitive))))
               AS "duckanon others"
    FROM _duckanon_wanted
), _duckanon_with_others AS (
    SELECT _duckanon_class, _duckanon_others.person AS _duckanon_person,
           _duckanon_others.sensitive AS _duckanon_sensitive, _duckanon_others.kept AS _duckanon_kept
    FROM anon._coarse_codes('anon.generalize', '"_duckanon_packed"', cols, '_duckanon_plan', 'duckanon others')
), _duckanon_alone AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.generalize', tbl, {'cols': cols})) FROM query_table(tbl)
), _duckanon_without_others AS (
    SELECT _duckanon_class, NULL AS _duckanon_person, NULL AS _duckanon_sensitive,
           struct_pack(_duckanon_none := _duckanon_others) AS _duckanon_kept
    FROM anon._coarse_codes('anon.generalize', '"_duckanon_alone"', cols, '_duckanon_plan', '_duckanon_none')
), _duckanon_coarse AS MATERIALIZED (
    FROM query_table(CASE WHEN keep IS NULL AND person IS NULL AND sensitive IS NULL THEN '_duckanon_without_others'
                          ELSE '_duckanon_with_others' END)
), _duckanon_by_rows AS (
    SELECT _duckanon_class, count(*) AS class_rows, count(*) AS people FROM _duckanon_coarse GROUP BY _duckanon_class
), _duckanon_by_people AS (
    SELECT _duckanon_class, count(*) AS class_rows, count(DISTINCT _duckanon_person) AS people
    FROM _duckanon_coarse GROUP BY _duckanon_class
), _duckanon_population AS NOT MATERIALIZED (
    SELECT COLUMNS(cols) FROM query_table(population)
), _duckanon_in_population AS (
    SELECT cast_to_type(_duckanon_class, _duckanon_alike) AS _duckanon_class, count(*) AS people
    FROM anon._coarse_codes('anon.generalize', '"_duckanon_population"', cols, '_duckanon_plan', '_duckanon_none')
         LEFT JOIN (SELECT _duckanon_class AS _duckanon_alike FROM _duckanon_coarse LIMIT 0) ON true
    GROUP BY ALL
), _duckanon_by_population AS (
    SELECT _duckanon_class, class_rows, coalesce(_duckanon_in_population.people, 0) AS people
    FROM _duckanon_by_rows LEFT JOIN _duckanon_in_population USING (_duckanon_class)
), _duckanon_counted AS (
    FROM query_table(CASE WHEN typeof(population) = 'VARCHAR' THEN '_duckanon_by_population'
                          WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END)
), _duckanon_members AS MATERIALIZED (
    SELECT hash(_duckanon_class) AS class, _duckanon_sensitive AS value,
           anon._value_code(_duckanon_person) AS member, count(*) AS size
    FROM _duckanon_coarse GROUP BY ALL
), _duckanon_spread AS (                                        -- a class of which too much would be known has nobody
    SELECT _duckanon_class, class_rows, CASE WHEN is_spread THEN people ELSE 0 END AS people
    FROM _duckanon_counted JOIN anon._spread('_duckanon_members', l, l_kind, c, t, person)
         ON class = hash(_duckanon_class)
), _duckanon_sizes AS MATERIALIZED (
    FROM query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_counted' ELSE '_duckanon_spread' END)
), _duckanon_people AS (
    SELECT CASE WHEN person IS NULL THEN count(*) ELSE count(DISTINCT _duckanon_person) END AS people
    FROM _duckanon_coarse
), _duckanon_least_of_all AS (
    SELECT k AS least
), _duckanon_least_of_sample AS (
    SELECT CASE WHEN people = 0 THEN k
                ELSE anon.sample_class_size(k, beta * (1 - max_suppressed_fraction), TRY_CAST(population AS DOUBLE),
                                            people) END AS least
    FROM _duckanon_people
), _duckanon_least AS (
    FROM query_table(CASE WHEN population IS NULL OR typeof(population) = 'VARCHAR'
                          THEN '_duckanon_least_of_all' ELSE '_duckanon_least_of_sample' END)
), _duckanon_kept_beside AS NOT MATERIALIZED (
    SELECT unnest(_duckanon_cols), * EXCLUDE (_duckanon_cols, _duckanon_sensitive) FROM _duckanon_wanted
), _duckanon_narrowed AS (
    SELECT anon._narrowing_refusal('anon.generalize',
               list({'kept_column': kept_column, 'column_name': column_name, 'narrows': narrows}
                    ORDER BY kept_place ASC NULLS LAST, column_place ASC NULLS LAST),
               'leave {it} out, make {it} coarser too, or name {it} in narrowing') AS sentence
    FROM anon._kept_pairs('anon.generalize', '"_duckanon_kept_beside"', cols, '_duckanon_plan')
    WHERE narrows IS DISTINCT FROM false
          AND NOT anon._is_among(kept_column, coalesce(narrowing, [])) AND NOT anon._is_among(kept_column, [person])
), _duckanon_left AS (
    FROM _duckanon_members
    WHERE class IN (SELECT hash(_duckanon_class) FROM _duckanon_sizes, _duckanon_least WHERE people >= least)
), _duckanon_far AS (                                           -- from what is left, which the search has looked at
    SELECT CASE WHEN max(farness) > t + 1e-9
                THEN 'anon.generalize: classes that are left are farther from each other than t.' END AS sentence
    FROM anon._closeness('_duckanon_left', 'auto', person)
), _duckanon_promise AS MATERIALIZED (
    SELECT CASE WHEN small_rows > max_suppressed_fraction * row_count + 1e-6
                     THEN anon._refuse('anon.generalize: ' || small_rows || ' rows are in classes of fewer than '
                                       || least_of_all || ' people, more than may be suppressed.')
                ELSE least_of_all END AS least_people
    FROM (SELECT any_value(least) AS least_of_all, sum(class_rows) AS row_count,
                 coalesce(sum(class_rows) FILTER (people < least), 0) AS small_rows
          FROM _duckanon_sizes, _duckanon_least)
    WHERE anon._unless((SELECT sentence FROM query_table(CASE WHEN len(list_filter(
                                          TRY_CAST(keep AS VARCHAR[]), lambda name:
                                              NOT anon._is_among(name, coalesce(narrowing, []))
                                              AND coalesce(lower(name) <> lower(person), true))) > 0
                                      THEN '_duckanon_narrowed' ELSE '_duckanon_nothing' END)))
          AND anon._unless((SELECT sentence FROM query_table(CASE WHEN t IS NULL THEN '_duckanon_nothing'
                                                                  ELSE '_duckanon_far' END)))
), _duckanon_shuffled AS (                                      -- as numbers, of which a sort holds many more
    SELECT unnest(_duckanon_class), _duckanon_kept FROM _duckanon_coarse
    WHERE _duckanon_class IN (SELECT _duckanon_class FROM _duckanon_sizes, _duckanon_promise
                              WHERE people >= least_people)
    ORDER BY anon._random() ASC NULLS LAST
), _duckanon_labels AS (            -- the number of a label is its place; told apart byte by byte: a collation may not
    SELECT list(label ORDER BY encode(label) ASC NULLS LAST) AS labels
    FROM (SELECT any_value(label) AS label FROM _duckanon_plan WHERE label IS NOT NULL GROUP BY encode(label))
), _duckanon_released AS (
    SELECT _labels.labels[COLUMNS(_coarse.* EXCLUDE (_duckanon_kept))], _coarse._duckanon_kept
    FROM _duckanon_shuffled AS _coarse, _duckanon_labels AS _labels
)
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT * EXCLUDE (_duckanon_kept), unnest(_duckanon_kept) FROM _duckanon_released);
