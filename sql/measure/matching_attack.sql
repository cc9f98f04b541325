-- anon.matching_attack: how many records are found again by their nearest released row, and whether an attacker can
-- tell which.
--     key            a column of both tables that says of which record a released row is the image; NULL: the n-th row
--                    is the image of the n-th record
--     records, released_rows, images   and how many records have an image
--     matched        the share of the records whose nearest released row is their own image; a tie of m rows counts 1/m
--     expected       what guessing would give
--     tied_rows      how many rows are nearest, on average
--     distance_auc, ambiguity_auc, uncertainty_auc   how well each measure tells right matches from wrong ones: 0.5 not
--                    at all, 1 perfectly; NULL where all are right or all wrong
--     log, special, categories   as in anon.prediction_risk
--     derived        'auto' leaves columns out of distances that follow from others of the original, as in
--                    anon.privacy_test; 'off' keeps them
-- For releases that have an image of each record, such as noise or microaggregation (their `key` keeps it).
--     (Thesis, Section 4.2, Figure 4-4)
-- test: tests/measure/matching_attack.test
-- needs: python
CREATE OR REPLACE MACRO anon.matching_attack(
    original, released, cols, key := NULL, k := 5, log := NULL, special := 'auto', categories := NULL, derived := 'off'
) AS TABLE
WITH _duckanon_original AS (                            -- a name that begins with a space is nobody's column
    SELECT COLUMNS(anon._with_column(cols, key)), row_number() OVER () AS " position"
    FROM query_table(anon._checked('anon.matching_attack', original, cols))
), _duckanon_released AS (
    SELECT COLUMNS(anon._with_column(cols, key)), row_number() OVER () AS " position"
    FROM query_table(anon._checked('anon.matching_attack', released, cols))
)
SELECT unnest(anon._run_matching_attack(
           anon._pack('anon.matching_attack', '"_duckanon_original"',
                      anon._with_columns(cols, [coalesce(key, ' position')]), NULL),
           anon._pack('anon.matching_attack', '"_duckanon_released"',
                      anon._with_columns(cols, [coalesce(key, ' position')]), NULL),
           {'key': coalesce(key, ' position'), 'k': k, 'log': log, 'special': special,
            'categories': categories, 'derived': derived}), max_depth := 2);
COMMENT ON MACRO TABLE anon.matching_attack IS
    'How many records are found again by their nearest released row, and whether an attacker can tell which.';
