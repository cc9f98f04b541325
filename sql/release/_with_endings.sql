-- anon._with_endings: the columns that hold the ends of intervals: x_lo and x_hi for each x.
CREATE OR REPLACE MACRO anon._with_endings(names) AS
    list_concat(list_transform(CAST(names AS VARCHAR[]), lambda name: name || '_lo'),
                list_transform(CAST(names AS VARCHAR[]), lambda name: name || '_hi'));
