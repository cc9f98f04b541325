-- anon.containment_candidates: the original, with a column `candidates`: how many released rows each record may be,
-- since all their cells hold its values. 0: it was suppressed, or its values are not covered. A suppressed record may
-- have candidates all the same: rows of another class that hold its values; and a value that only suppressed rows had
-- may be in any cell 'other'.
--     original, released, hierarchies  as in anon.generalization_loss; a released cell may also be an interval
--                                      STRUCT(lo, hi), as anon.boxes makes them, whose ends belong to it
-- A column `candidates` that the original has already is replaced.
-- test: tests/measure/containment_candidates.test
CREATE OR REPLACE MACRO anon.containment_candidates(original, released, cols, hierarchies := NULL) AS TABLE
SELECT COLUMNS(lambda column_name: lower(column_name) NOT IN ('candidates', '_duckanon_candidates')),
       _duckanon_candidates AS candidates
FROM anon._with_candidates('anon.containment_candidates', original, released, cols, hierarchies);
COMMENT ON MACRO TABLE anon.containment_candidates IS
    'The original, with how many rows of a generalized release may be each record: their cells hold its values.';
