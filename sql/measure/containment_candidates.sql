-- anon.containment_candidates: the original, with a column `candidates`: how many released rows each record may be,
-- since all their cells hold its values. 0: it was suppressed, or its values are not covered. A suppressed record may
-- have candidates all the same: rows of another class that hold its values; and a value that only suppressed rows had
-- may be in any cell 'other'.
--     original, released, hierarchies  as in anon.generalization_loss; a released cell may also be an interval
--                                      STRUCT(lo, hi), as anon.boxes makes them, whose ends belong to it
-- A column `candidates` that the original has already is replaced.
-- What is compared are different values, labels and classes: where no value has two labels it is a join on the labels;
-- where they overlap (boxes) values are cut into buckets, and the classes of a label in its buckets are bit strings.
-- test: tests/measure/containment_candidates.test
CREATE OR REPLACE MACRO anon.containment_candidates(original, released, cols, hierarchies := NULL) AS TABLE
WITH _duckanon_shown_lists AS MATERIALIZED (
    FROM anon._cell_lists(anon._checked_table('anon.containment_candidates', 'released', released,
                                              anon._checked('anon.containment_candidates', released, cols)), cols)
), _duckanon_shown AS MATERIALIZED (
    SELECT DISTINCT unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS label FROM _duckanon_shown_lists
), _duckanon_everyone AS (
    SELECT COLUMNS(cols) FROM query_table(original)
), _duckanon_original_lists AS MATERIALIZED (
    FROM anon._cell_lists('_duckanon_everyone', cols)
), _duckanon_rules AS MATERIALIZED (
    FROM anon._label_rules('anon.containment_candidates', '_duckanon_everyone', '_duckanon_shown', cols, hierarchies)
), _duckanon_parts AS MATERIALIZED (
    FROM anon._label_parts('_duckanon_original_lists', '_duckanon_rules')
), _duckanon_classes AS MATERIALIZED (
    FROM anon._release_classes('_duckanon_shown_lists', '_duckanon_rules', '_duckanon_parts')
), _duckanon_found AS MATERIALIZED (
    FROM anon._containment('_duckanon_original_lists', '_duckanon_rules', '_duckanon_parts', '_duckanon_classes')
), _duckanon_counts AS MATERIALIZED (
    FROM anon._candidate_counts('_duckanon_found', '_duckanon_classes')
), _duckanon_rows AS (                                -- the columns as one, beside which every name is free
    SELECT struct_pack(*COLUMNS(lambda column_name: lower(column_name) <> 'candidates')) AS record,
           [UNPACK(anon._cell_text(COLUMNS(cols)))] AS row_cells, [UNPACK(lower(alias(COLUMNS(cols))))] AS row_names
    FROM query_table(anon._checked_table('anon.containment_candidates', 'original', original,
                                         anon._checked('anon.containment_candidates', original, cols)))
)
SELECT unnest(record), candidates
FROM _duckanon_rows JOIN _duckanon_counts ON cells = anon._in_order(row_cells, row_names, cols);
COMMENT ON MACRO TABLE anon.containment_candidates IS
    'The original, with how many rows of a generalized release may be each record: their cells hold its values.';
