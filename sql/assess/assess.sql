-- anon.assess: what is known of a table at a glance: one row per column, with the part it plays for the anonymity of
-- the people in the table. The first call on a new table; every suggestion is a hint, made from names and counts.
--     kind                 numeric, date, text, boolean or other
--     distinct_values      different values, NULL not counted, by their 64-bit hash (as in anon.column_profile)
--     unique_fraction      share of the people who have a value that nobody else has; NULL is a value here
--     identifier_category  what anon.direct_identifiers says
--     determines, determined_by   columns that follow from this one on all rows, and from which it follows. Found on
--                          pairs of rows that agree in a column, then verified on the whole table. Columns in which
--                          most people are alone, and constants, are left out
--     role                 identifier (remove it), person key (goes into `person`), quasi-identifier (goes into
--                          `cols`), sensitive, or free (nothing speaks against it by itself)
--     why                  the reasons, in words
--     person               name of the column that says whose row it is; NULL: every row is a person
-- test: tests/assess/assess.test
CREATE OR REPLACE MACRO anon.assess(tbl, person := NULL) AS TABLE
WITH _duckanon_coded AS MATERIALIZED (
    FROM anon._coded_rows('anon.assess', tbl, person)
), _duckanon_cells AS (
    SELECT id, CASE WHEN person IS NULL THEN id::UBIGINT ELSE row_codes[-1] END AS member,
           unnest(range(1, len(row_codes))) AS place, unnest(row_codes[1:len(row_codes) - 1]) AS code
    FROM _duckanon_coded
), _duckanon_classes AS MATERIALIZED (
    SELECT place, code, count(*) AS size, min(id) AS first_id, max(id) AS last_id, min(member) AS lowest,
           max(member) AS highest
    FROM _duckanon_cells GROUP BY place, code
), _duckanon_people AS (
    SELECT CASE WHEN person IS NULL THEN count(*) ELSE count(DISTINCT row_codes[-1]) END AS people FROM _duckanon_coded
), _duckanon_profile AS MATERIALIZED (
    SELECT place, count(*) AS classes, count(code) AS distinct_values,
           coalesce(sum(size) FILTER (code IS NOT NULL), 0) AS known_rows,
           CASE WHEN person IS NULL THEN count(*) FILTER (size = 1)
                ELSE count(DISTINCT lowest) FILTER (lowest = highest) END
               / nullif(any_value(people), 0) AS unique_fraction
    FROM _duckanon_classes, _duckanon_people GROUP BY place
), _duckanon_names AS (
    SELECT place, column_name, anon._kind(column_type) AS kind, anon._plain_name(column_name) AS plain_name
    FROM anon._columns(anon._checked('anon.assess', tbl, ['*']))
), _duckanon_depends AS MATERIALIZED (
    SELECT one.place, other.place AS other_place, one.column_name, other.column_name AS other_name
    FROM anon._dependencies('_duckanon_coded', '_duckanon_classes', '_duckanon_profile') AS found
    JOIN _duckanon_names AS one ON found.place = one.place JOIN _duckanon_names AS other ON found.other = other.place
), _duckanon_determines AS (
    SELECT place, list(other_name ORDER BY other_place ASC NULLS LAST) AS determines
    FROM _duckanon_depends GROUP BY place
), _duckanon_determined AS (
    SELECT other_place AS place, list(column_name ORDER BY place ASC NULLS LAST) AS determined_by
    FROM _duckanon_depends GROUP BY other_place
), _duckanon_categories AS (
    SELECT column_name, list(category) AS categories,
           bool_and(category = 'unique_code' AND evidence = 'values') AS only_differs
    FROM anon.direct_identifiers(anon._checked('anon.assess', tbl, ['*'])) GROUP BY column_name
), _duckanon_ruled AS (
    SELECT place, min_by(role, rule) FILTER (rule > 1) AS ruled_role, min_by(topic, rule) FILTER (rule > 1) AS topic,
           bool_or(rule = 1) AS is_key_named
    FROM _duckanon_names, anon._role_rules()
    WHERE anon._has_word(plain_name, name_words) AND NOT anon._has_word(plain_name, except_words)
    GROUP BY place
), _duckanon_known AS (
    SELECT place, column_name, kind, coalesce(distinct_values, 0) AS distinct_values,
           coalesce(known_rows, 0) AS known_rows,
           coalesce(unique_fraction, 0) AS unique_fraction, coalesce(categories, []) AS categories,
           coalesce(determines, []) AS determines, coalesce(determined_by, []) AS determined_by, ruled_role, topic,
           coalesce(is_key_named, false) AND coalesce(known_rows, 0) >= 1.1 * coalesce(distinct_values, 0)
               AND coalesce(distinct_values, 0) > 1 AS repeats,
           coalesce(is_key_named, false) AS is_key_named, coalesce(only_differs, false) AS only_differs
    FROM _duckanon_names
    LEFT JOIN _duckanon_profile USING (place) LEFT JOIN _duckanon_determines USING (place)
    LEFT JOIN _duckanon_determined USING (place) LEFT JOIN _duckanon_ruled USING (place)
    LEFT JOIN _duckanon_categories USING (column_name)
), _duckanon_keyed AS (           -- one person key: the one that was named, or the finest of those that repeat
    SELECT *, CASE WHEN person IS NULL
                        THEN repeats AND place = first_value(place) OVER (ORDER BY repeats DESC NULLS LAST,
                                                                 distinct_values DESC NULLS LAST, place ASC NULLS LAST)
                   ELSE lower(column_name) = lower(CAST(person AS VARCHAR)) END AS is_key
    FROM _duckanon_known
), _duckanon_roles AS (
    SELECT *, CASE WHEN is_key THEN 'person key'
                   WHEN is_key_named THEN 'identifier'
                   -- amounts that happen to be different for everybody are no code of anything
                   WHEN len(anon._direct_categories(categories)) > 0 AND NOT (only_differs AND ruled_role IS NOT NULL)
                        THEN 'identifier'
                   WHEN distinct_values <= 1 THEN 'free'
                   WHEN ruled_role IS NOT NULL THEN ruled_role
                   WHEN len(categories) > 0 OR unique_fraction >= 0.2 THEN 'quasi-identifier'
                   ELSE 'free' END AS first_role
    FROM _duckanon_keyed
), _duckanon_alike AS (           -- a code that stands for a quasi-identifier is one
    SELECT *, list_intersect(list_intersect(determines, determined_by), quasi_identifiers) AS alike
    FROM _duckanon_roles, (SELECT coalesce(list(column_name), []) AS quasi_identifiers FROM _duckanon_roles
                           WHERE first_role = 'quasi-identifier')
)
SELECT column_name, kind, distinct_values, unique_fraction,
       nullif(anon._joined(categories, ', '), '') AS identifier_category,
       determines, determined_by,
       CASE WHEN first_role = 'free' AND len(alike) > 0 THEN 'quasi-identifier' ELSE first_role END AS role,
       anon._role_reason(column_name, role, person, categories, topic, unique_fraction, distinct_values, known_rows,
                         alike) AS why
FROM _duckanon_alike
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.assess IS
    'What is known of a table at a glance: one row per column, with the role it should play and why.';
