-- anon._multiples_within: the largest whole number of times that `amount` fits into `whole`; exact where the quotient
-- is rounded up to a whole number.
CREATE OR REPLACE MACRO anon._multiples_within(amount, whole) AS
    floor(whole / amount * (1 + 1e-15)) - (amount * floor(whole / amount * (1 + 1e-15)) > whole)::INTEGER;
