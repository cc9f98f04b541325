-- anon._plan_scale: how many cells of a grid there are to a unit of the numbers from origin to ceiling; 0 where all of
-- them are in one cell, since they are equal, or too near each other or too far apart for a double.
CREATE OR REPLACE MACRO anon._plan_scale(cells, origin, ceiling) AS
    CASE WHEN isfinite(ceiling - origin) AND isfinite((cells - 1) / nullif(ceiling - origin, 0))
         THEN (cells - 1) / nullif(ceiling - origin, 0) ELSE 0.0 END;
