-- anon._rank_sum: the sum of |r| over the ranks r from 0 to `distance`, negative where the distance is below -1, so
-- that the difference of two such sums is the sum of |r| over all ranks between them.
CREATE OR REPLACE MACRO anon._rank_sum(distance) AS
    CASE WHEN distance >= 0 THEN distance * (distance + 1) // 2 ELSE -(distance * (distance + 1) // 2) END;
