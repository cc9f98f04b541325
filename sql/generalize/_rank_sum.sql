-- anon._rank_sum: the sum of |r| for r from 0 to `distance`, counted below zero where the distance is below -1: the
-- difference of two of them is the sum of |r| over all ranks between.
CREATE OR REPLACE MACRO anon._rank_sum(distance) AS
    CASE WHEN distance >= 0 THEN distance * (distance + 1) // 2 ELSE -(distance * (distance + 1) // 2) END;
