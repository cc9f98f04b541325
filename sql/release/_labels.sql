-- anon._labels: the labels of a row in the order of `by`; none where that is NULL.
--     known  a list of {'name', 'label'}, names in lower case
CREATE OR REPLACE MACRO anon._labels(by, known) AS
    list_transform(coalesce(TRY_CAST("by" AS VARCHAR[]), []),
                   lambda wanted: list_filter(known, lambda each: each.name = lower(wanted))[1].label);
