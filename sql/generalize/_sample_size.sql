-- anon._sample_size: how many rows to draw so that, with a probability of 1 - delta, all ranks at once are known to
-- within `epsilon` times the number of rows (Dvoretzky, Kiefer, Wolfowitz; Massart's constant, which holds for drawing
-- without replacement too).
CREATE OR REPLACE MACRO anon._sample_size(epsilon, delta, sample_rows) AS
    CAST(coalesce(sample_rows, ceil(ln(2 / delta) / (2 * epsilon * epsilon))) AS BIGINT);
