-- anon._unpaired: the columns of a table that are not one of two, x_lo and x_hi, with the ends of intervals.
CREATE OR REPLACE MACRO anon._unpaired(names) AS
    list_filter(CAST(names AS VARCHAR[]),
                lambda name: NOT (regexp_matches(name, '(?is)_(lo|hi)$')
                                  AND anon._is_among(regexp_replace(name, '(?s)...$', ''), anon._pairs(names))));
