-- anon._sample_size: how many rows to draw so that every rank is known to `epsilon` of them with a probability of 1 -
-- delta, all ranks at once (Dvoretzky, Kiefer, Wolfowitz; Massart's constant, which holds for drawing without
-- replacement too).
CREATE OR REPLACE MACRO anon._sample_size(epsilon, delta, sample_rows) AS
    CAST(coalesce(sample_rows, ceil(ln(2 / delta) / (2 * epsilon * epsilon))) AS BIGINT);
