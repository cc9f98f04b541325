-- anon.box_halfwidths: the best half-widths of a box around a point, one per column.
--     sensitivities  how much the statistic changes with each column at the point, all above 0
--     density        records per unit of volume at the point
--     k, l, epsilon  at least k records, and l values at least epsilon apart in each column (a list; NULL: l = 1)
--     Delta_i = c / a_i,  c = 1/2 (k / rho  a_1 ... a_n)^(1/n), where diversity asks for no more; a_i the
--     sensitivities, rho the density, n the number of columns
--     (Accurate Boxes, Sections II and IV)
-- test: tests/release/box_halfwidths.test
-- needs: python
CREATE OR REPLACE MACRO anon.box_halfwidths(sensitivities, density, k, l := 1, epsilon := NULL) AS
    CASE WHEN len(TRY_CAST(sensitivities AS DOUBLE[])) = 0
              THEN error('anon.box_halfwidths: sensitivities must hold one number for each column; got an empty list.')
         WHEN len(TRY_CAST(epsilon AS DOUBLE[])) <> len(TRY_CAST(sensitivities AS DOUBLE[]))
              THEN error(anon._must_be('anon.box_halfwidths', 'epsilon',
                                       'a list of as many numbers as there are sensitivities', epsilon))
         ELSE _anon_box_halfwidths({'sensitivities': sensitivities, 'density': density, 'k': k, 'l': l,
                                    'epsilon': epsilon}) END;
COMMENT ON MACRO anon.box_halfwidths IS
    'Best half-widths of a box around a point, from sensitivities, density, k and diversity.';
