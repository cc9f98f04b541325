-- anon._dependencies: which columns of a table determine which others (functional dependencies): one row per pair, by
-- the columns' places.
-- Candidates come from a sample: for each column up to `pairs` pairs of rows that agree in it, picked by the hash of
-- their value; a column in which one pair differs is not determined. The few that are left are verified on all rows. A
-- NULL is a value. Columns in which most people are alone determine everything, constants are determined by everything:
-- both are left out.
--     coded_step    name of a step of anon._coded_rows
--     class_step    name of a step with a row per column and value: place, code, size, first_id, last_id (two of its
--                   rows)
--     profile_step  name of a step with a row per column: place, unique_fraction, classes (values, NULL counted)
CREATE OR REPLACE MACRO anon._dependencies(coded_step, class_step, profile_step) AS TABLE
WITH _duckanon_sample AS (     -- so many pairs that all comparisons together are some millions, however many columns
    SELECT greatest(20, least(1000, 4_000_000 // greatest(1, count(*) * count(*)))) AS pairs
    FROM query_table(profile_step)
), _duckanon_pairs AS MATERIALIZED (
    SELECT place, first_id, last_id
    FROM query_table(class_step) JOIN query_table(profile_step) USING (place), _duckanon_sample
    WHERE size > 1 AND unique_fraction <= 0.5
    QUALIFY row_number() OVER (PARTITION BY place ORDER BY hash(code) ASC NULLS LAST) <= pairs
), _duckanon_wanted AS (
    SELECT id, row_codes FROM query_table(coded_step)
    WHERE id IN (SELECT first_id FROM _duckanon_pairs UNION SELECT last_id FROM _duckanon_pairs)
), _duckanon_compared AS (
    SELECT place, unnest(range(1, len(one.row_codes))) AS other,
           unnest(list_transform(range(1, len(one.row_codes)), lambda nth:
                                 one.row_codes[nth] IS NOT DISTINCT FROM two.row_codes[nth])) AS agrees
    FROM _duckanon_pairs
    JOIN _duckanon_wanted AS one ON first_id = one.id JOIN _duckanon_wanted AS two ON last_id = two.id
), _duckanon_candidates AS MATERIALIZED (
    SELECT place, other
    FROM _duckanon_compared JOIN (SELECT place AS other, classes FROM query_table(profile_step)) USING (other)
    WHERE place <> other AND classes > 1
    GROUP BY place, other
    HAVING bool_and(agrees)
), _duckanon_lists AS (
    SELECT list(place) AS places, list(other) AS others FROM _duckanon_candidates
), _duckanon_verified AS (     -- the hash of a NULL is any number: it only has to be the same each time
    SELECT unnest(places) AS place, unnest(others) AS other,
           unnest(list_transform(places, lambda nth: coalesce(row_codes[nth], 42))) AS code,
           unnest(list_transform(others, lambda nth: coalesce(row_codes[nth], 42))) AS other_code
    FROM query_table(coded_step), _duckanon_lists
)
SELECT place, other
FROM (SELECT place, other, code, min(other_code) = max(other_code) AS is_one
      FROM _duckanon_verified GROUP BY place, other, code)
GROUP BY place, other
HAVING bool_and(is_one);
