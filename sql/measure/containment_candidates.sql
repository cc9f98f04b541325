-- anon.containment_candidates: the original, with a column `candidates`: the number of released rows that each record
-- may be, since all their cells contain its values. 0: it was suppressed, or its values are not covered. A suppressed
-- record may have candidates all the same: rows of another class that contain its values. A value that only suppressed
-- rows had may be in any cell 'other'.
--     cols         columns that both tables have, exact in the original and generalized in the release [a list of
--                  names]
--     hierarchies  as in anon.generalization_loss
-- A released cell is a label as in anon.generalization_loss, or an interval STRUCT(lo, hi), as anon.boxes returns them,
-- whose ends belong to it. A column `candidates` that the original has already is replaced.
-- promises: RowPer('row'), InvariantUnder(*TABLE)
-- test: tests/measure/containment_candidates.test
CREATE OR REPLACE MACRO anon.containment_candidates(original, released, cols, hierarchies := NULL) AS TABLE
SELECT COLUMNS(lambda column_name: lower(column_name) NOT IN ('candidates', '_duckanon_candidates')),
       _duckanon_candidates AS candidates
FROM anon._with_candidates('anon.containment_candidates', original, released, cols, hierarchies);
COMMENT ON MACRO TABLE anon.containment_candidates IS
    'The original, with the number of rows of a generalized release that each record may be.';
