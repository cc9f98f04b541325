-- anon._did_you_mean: what a refusal of a name ends with: '; did you mean "zip"?' where one of the others is nearly the
-- same, and a full stop else.
--     names  a list of the names that there are
CREATE OR REPLACE MACRO anon._did_you_mean(name, names) AS
    coalesce('; did you mean "'
             || list_filter(list_sort(list_transform(names, lambda other:
                    {'distance': damerau_levenshtein(lower(name), lower(other)), 'name': other}), 'ASC', 'NULLS LAST'),
                    lambda near: near['distance'] <= 1 + len(name) // 4)[1]['name']
             || '"?', '.');
