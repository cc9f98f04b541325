-- anon._open_end: the sentence that refuses an interval with an open end, NULL for others.
CREATE OR REPLACE MACRO anon._open_end(ends, name) AS
    CASE WHEN ends IS NOT NULL AND (ends.lo IS NULL OR ends.hi IS NULL)
              THEN 'anon.midpoints: column "' || name || '" has intervals with an open end, which have no midpoint; '
                   || 'leave these records out.' END;
