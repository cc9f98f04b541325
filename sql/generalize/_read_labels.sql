-- anon._read_labels: the labels of a release as they are read (`reading`). A label such as '*' or 'other' that is a
-- value of the original, too, is that value: its reading is in quotation marks. It is read as made up where the release
-- shows that it is: another label names the value, '{"other"}' or a set, or more rows have it than have the value.
-- '{other}' is what new records call merged values beside a value 'other', which may then be in more rows than before.
--     labels, value_counts  names of steps: place, label and size; anon._value_counts of the original
CREATE OR REPLACE MACRO anon._read_labels(labels, value_counts) AS TABLE
WITH _duckanon_doubted AS (
    SELECT shown.place, shown.label, held.size >= shown.size AS is_enough
    FROM query_table(labels) AS shown
    JOIN query_table(value_counts) AS held ON held.place = shown.place AND held.value = shown.label
    WHERE anon._value_label(shown.label) <> shown.label
), _duckanon_named AS (                                -- what sets name, and sets of one label without marks
    SELECT place, unnest(anon._label_members(label)) AS value, false AS is_rest FROM query_table(labels)
    WHERE starts_with(label, '{') AND ends_with(label, '}')
    UNION ALL
    SELECT place, label[2:-2], true FROM query_table(labels) WHERE starts_with(label, '{') AND ends_with(label, '}')
), _duckanon_values AS (
    SELECT doubted.place, doubted.label FROM _duckanon_doubted AS doubted
    LEFT JOIN _duckanon_named AS named ON named.place = doubted.place AND named.value = doubted.label
    GROUP BY doubted.place, doubted.label
    HAVING count(*) FILTER (is_rest = false) = 0 AND (bool_or(is_rest) OR bool_and(is_enough))
)
SELECT shown.place, shown.label, shown.size,
       CASE WHEN "values".label IS NULL THEN shown.label
            ELSE '{"' || replace(shown.label, '"', '""') || '"}' END AS reading
FROM query_table(labels) AS shown
LEFT JOIN _duckanon_values AS "values" ON "values".place = shown.place AND "values".label = shown.label;
