-- anon._released_value: the value of a cell that is kept, as it may be released: as text where its type lists values,
-- since an ENUM names also those that no released row has. A field of a struct is taken by its name when the query is
-- bound, so that the result has the type of that field.
CREATE OR REPLACE MACRO anon._released_value(cell) AS
    struct_extract({'as_text': CAST(struct_extract(cell, 'value') AS VARCHAR),
                    'as_it_is': struct_extract(cell, 'value')},
                   CASE WHEN contains(typeof(cell), 'ENUM(') THEN 'as_text' ELSE 'as_it_is' END);
