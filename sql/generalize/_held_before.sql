-- anon._held_before: the largest number that the intervals before this one hold, in the order in which they begin.
-- Where it reaches the beginning of the interval itself, the two overlap.
CREATE OR REPLACE MACRO anon._held_before(place, held_from, held_to) AS
    max(held_to) OVER (PARTITION BY place ORDER BY held_from ASC NULLS LAST, held_to ASC NULLS LAST
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);
