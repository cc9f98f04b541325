-- anon._unpaired: the columns of a table that are not one of two, x_lo and x_hi, with the ends of intervals.
CREATE OR REPLACE MACRO anon._unpaired(names) AS
    list_filter(CAST(names AS VARCHAR[]),
                lambda name: NOT anon._is_among(name, list_concat(list_transform(CAST(anon._pairs(names) AS VARCHAR[]), lambda name: name || '_lo'),
                                                                  list_transform(CAST(anon._pairs(names) AS VARCHAR[]), lambda name: name || '_hi'))));
