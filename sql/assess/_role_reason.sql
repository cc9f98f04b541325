-- anon._role_reason: why anon.assess suggests a role for a column, in words.
CREATE OR REPLACE MACRO anon._role_reason(
    column_name, role, person, categories, topic, unique_fraction, distinct_values, known_rows, alike
) AS
    CASE WHEN role = 'person key'
              THEN round(known_rows / greatest(distinct_values, 1), 1) || ' rows for each of its values: rows are not '
                   || 'people, and person := ''' || replace(column_name, '''', '''''') || ''' belongs in every call'
         WHEN role = 'identifier' AND len(anon._direct_categories(categories)) > 0
              THEN 'looks like ' || anon._joined(anon._direct_categories(categories), ', ') || ': remove it'
         WHEN role = 'identifier' THEN 'is named like the key of a person: remove it'
         WHEN distinct_values <= 1 THEN 'has the same value everywhere'
         WHEN topic IS NOT NULL AND role <> 'free' THEN 'its name says that it is about ' || topic
         WHEN role = 'quasi-identifier' AND len(categories) > 0
              THEN 'looks like ' || anon._joined(categories, ', ') || ', which others may know'
         WHEN role = 'quasi-identifier' AND len(alike) > 0
              THEN 'stands for ' || anon._joined(alike, ', ') || ', one follows from the other'
         WHEN role = 'quasi-identifier' THEN 'its values alone pick people out'
         ELSE 'neither its name nor its values say that it is more' END
    || CASE WHEN role <> 'identifier' AND role <> 'person key' AND unique_fraction > 0
                 THEN '; ' || CASE WHEN unique_fraction < 0.0001 THEN 'fewer than 0.01'
                                   ELSE CAST(round(100 * unique_fraction, 2) AS VARCHAR) END
                      || ' % of the people are alone in it'
            ELSE '' END
    || '.';
