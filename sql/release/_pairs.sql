-- anon._pairs: which intervals a table has as two columns, x_lo and x_hi: a list of the names x, spelled as in x_lo.
CREATE OR REPLACE MACRO anon._pairs(names) AS
    list_transform(list_filter(CAST(names AS VARCHAR[]),
                               lambda low: regexp_matches(low, '(?is)^.+_lo$')
                                           AND anon._is_among(regexp_replace(low, '(?s)..$', 'hi'), names)),
                   lambda low: regexp_replace(low, '(?s)...$', ''));
