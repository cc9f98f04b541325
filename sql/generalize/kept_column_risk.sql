-- anon.kept_column_risk: what columns that a release keeps disclose about the columns that it generalizes: one row per
-- pair of a generalized column and a kept one.
--     values_within        original values of the generalized column that occur with the row's kept value inside the
--                          row's label, on average over the rows: what is left to guess for someone who sees both
--     values_shuffled      the same when the kept column is shuffled within the classes: what the label alone leaves
--     rank_distance_ratio  for numbers and dates: how far apart two people with the same label and kept value are, over
--                          the same when shuffled; useful where nearly all values are different
--     rank_correlation     for columns nearly all of whose values are different: of the ranks within classes, 1 for a
--                          copy of the generalized column, however it is scaled, reversed or written as text, 0 for a
--                          column that discloses nothing; NULL where there are too few rows
--     narrows              whether values_within / values_shuffled is below 0.9, or the other ratio (of a column with
--                          at least 30 values) below 0.7, or rank_correlation at least 0.85, beyond chance: the age
--                          beside a generalized date of birth does, an income does not. NULL where there are too few
--                          rows to tell. anon.generalize refuses such pairs unless the kept column is in `narrowing`
--     k                    the smallest number of people who share a class and a value of the kept column
--     cols                 generalized columns [a list of names]
--     keep                 columns that are released as they are; ['*']: all that do not look like identifiers [a list
--                          of names]
--     plan                 name of the table of a stored plan (`anon.plan`) by which `cols` are generalized; NULL: they
--                          are taken as they are, as in a release [a text, or NULL]
--     person               as in anon.k_anonymity
-- Ratios are computed from a part of the rows where these are very many, k from all.
-- promises: Between(0, 1, 'values_within', 'values_shuffled'), InvariantUnder(*TABLE)
-- test: tests/generalize/kept_column_risk.test
CREATE OR REPLACE MACRO anon.kept_column_risk(tbl, cols, keep, plan := NULL, person := NULL) AS TABLE
WITH _duckanon_plan AS (
    FROM anon._plan_table('anon.kept_column_risk', plan)
), _duckanon_table AS (
    SELECT *, NULL::VARCHAR AS _duckanon_none
    FROM query_table(anon._checked_person('anon.kept_column_risk', person, cols,
                         anon._checked_keep('anon.kept_column_risk', 'keep', keep,
                             anon._checked('anon.kept_column_risk', tbl, cols))))
    WHERE anon._unless((SELECT sentence FROM anon._refused_keep('anon.kept_column_risk', tbl, cols, keep, person)))
), _duckanon_source AS (
    SELECT COLUMNS(lambda name: anon._is_among(name, cols) OR anon._is_kept(name, cols, keep, person)),
           COLUMNS([coalesce(person, '_duckanon_none')]) AS _duckanon_person
    FROM _duckanon_table
), _duckanon_cells AS (
    SELECT hash(labels) AS class, unnest(range(1, 1 + len(kept))) AS kept_place, unnest(kept) AS kept, somebody
    FROM anon._coded_cells('anon.kept_column_risk', '"_duckanon_source"', cols,
                           CASE WHEN plan IS NOT NULL THEN '"_duckanon_plan"' END)
), _duckanon_sizes AS (
    SELECT kept_place, CASE WHEN person IS NULL THEN count(*) ELSE count(DISTINCT somebody) END AS size
    FROM _duckanon_cells GROUP BY kept_place, class, kept
)
SELECT column_name, kept_column, values_within, values_shuffled, rank_distance_ratio, rank_correlation, narrows, k
FROM anon._kept_pairs('anon.kept_column_risk', '"_duckanon_source"', cols,
                           CASE WHEN plan IS NOT NULL THEN '"_duckanon_plan"' END)
     JOIN (SELECT kept_place, min(size) AS k FROM _duckanon_sizes GROUP BY kept_place) USING (kept_place)
ORDER BY column_place ASC NULLS LAST, kept_place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.kept_column_risk IS
    'Whether columns that a release keeps narrow down those that it generalizes, and k with each of them.';
