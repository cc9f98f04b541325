-- anon._with_candidates: the original, with how many released rows each record may be, for anon.containment_candidates
-- and the others that ask it, which are named in errors (`caller`): `_duckanon_candidates`.
-- What is compared are different values, labels and classes: where no value has two labels it is a join on the labels;
-- where they overlap (boxes) values are cut into buckets, and the classes of a label in its buckets are bit strings.
CREATE OR REPLACE MACRO anon._with_candidates(caller, original, released, cols, hierarchies) AS TABLE
WITH _duckanon_shown_lists AS MATERIALIZED (
    FROM anon._cell_lists(caller, anon._checked_table(caller, 'released', released,
                                                      anon._checked(caller, released, cols)), cols)
), _duckanon_shown AS MATERIALIZED (
    SELECT place, label, sum(size)::BIGINT AS size
    FROM (SELECT unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS label, size FROM _duckanon_shown_lists)
    GROUP BY place, label
), _duckanon_everyone AS (
    SELECT COLUMNS(cols) FROM query_table(original)
), _duckanon_original_lists AS MATERIALIZED (
    FROM anon._cell_lists(caller, '_duckanon_everyone', cols)
), _duckanon_label_rules AS MATERIALIZED (
    FROM anon._label_rules(caller, '_duckanon_everyone', '_duckanon_shown', cols, hierarchies)
), _duckanon_rules AS MATERIALIZED (
    FROM anon._exact_rules('_duckanon_label_rules')
), _duckanon_parts AS MATERIALIZED (
    FROM anon._label_parts('_duckanon_original_lists', '_duckanon_rules')
), _duckanon_classes AS MATERIALIZED (
    FROM anon._release_classes('_duckanon_shown_lists', '_duckanon_rules', '_duckanon_parts')
), _duckanon_found AS MATERIALIZED (
    FROM anon._containment('_duckanon_original_lists', '_duckanon_rules', '_duckanon_parts', '_duckanon_classes')
), _duckanon_counts AS MATERIALIZED (
    FROM anon._candidate_counts('_duckanon_found', '_duckanon_classes')
), _duckanon_rows AS (                                -- the columns as one, beside which every name is free
    SELECT struct_pack(*COLUMNS(anon._user_columns(*, caller, original))) AS record,
           [UNPACK(anon._cell_text(COLUMNS(cols)))] AS row_cells,
           [UNPACK(lower(alias(COLUMNS(cols))))] AS row_names
    FROM query_table(anon._checked_table(caller, 'original', original, anon._checked(caller, original, cols)))
)
SELECT unnest(record), candidates AS _duckanon_candidates
FROM _duckanon_rows JOIN _duckanon_counts
     ON cells = list_transform(cols, lambda named: row_cells[list_position(row_names, lower(named))]);
