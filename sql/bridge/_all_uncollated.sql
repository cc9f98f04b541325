-- anon._all_uncollated: true where no column has a COLLATE of its own, an error otherwise: anon._uncollated of several
-- columns at once, which takes a third of the time to bind. Texts that are put together have the collation of each.
--     texts  concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR)))
CREATE OR REPLACE MACRO anon._all_uncollated(caller, cols, texts) AS
    CASE WHEN CASE WHEN true THEN 'z' ELSE texts END < 'K' THEN true
         ELSE error(concat(caller, ': columns must not have a collation, since people whose values differ would be '
                                  || 'counted as alike; got one among ', CAST(cols AS VARCHAR),
                           ': use a view with decode(encode(x)) for it.')) END;
