-- anon._random: a random number from 0 to 1. Where there is Python it comes from the operating system, so that
-- setseed() repeats no release; the stock shell has only DuckDB's own.
CREATE OR REPLACE MACRO anon._random() AS random();
