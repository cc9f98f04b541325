-- anon.known_events: how many people whoever knows some events of a person finds, in tables whose rows a person's key
-- links: one row for each number of known events. A choice is a multiset of at most that many rows of one person, each
-- seen as its table and its values in cols; people of the same class who have such rows hold it.
--     known            events that are known, from 0 to `known`
--     choices          different choices of exactly that many rows, within classes
--     k                the smallest number of people who hold a choice of at most that many rows
--     rare_choices     those of `choices` that fewer than `k` people hold
--     people           all people
--     people_under_k   people with a choice of at most that many rows that fewer than `k` people hold
--     share_under_k    their share
--     confidence       the largest share of one sensitive value among the people who hold such a choice; NULL without
--                      `sensitive`, as the next two
--     l                the fewest different sensitive values among these people
--     t                the largest distance between the distribution of these values and that of all people's
--     tables           tables of events [a list of tables, views or CTEs]
--     person           column of all tables that says whose row it is
--     cols             columns that somebody may know of an event; each table has some of them, or none
--     known            events that somebody may know of one person; a map says how many of each table, and then the
--                      largest number is that of all together [a whole number from 0 to 4, or a map from each table to
--                      one]
--     class            columns of the person that somebody may know: of `people`, or of all tables
--     people           table with a row for each person, also for those without events; NULL: those of the tables [a
--                      name, or NULL]
--     k                choices that fewer people hold are counted as rare [a whole number, at least 2]
--     sensitive        column of values that must not be inferred: people who hold a choice and have a row with the
--                      value, in any table, are counted; for `l` and `t`, NULL is the value of people who have none
--                      [a name, or NULL]
-- Choices are numbered exactly: the numbers of up to four rows, of 31 bits each, make one number of 124 bits.
-- promises: Between(0, 1, 'share_under_k', 'confidence'), InvariantUnder(*TABLE)
-- test: tests/assess/known_events.test
CREATE OR REPLACE MACRO anon.known_events(tables, person, cols, known := 2, class := NULL, people := NULL, k := 5,
                                          sensitive := NULL) AS TABLE
WITH RECURSIVE _duckanon_members AS MATERIALIZED (          -- bound first, so it refuses wrong arguments
    SELECT DISTINCT whose, kind
    FROM query(list_transform([anon._checked_events('anon.known_events', tables, person, cols, known, class, people, k,
                                   sensitive, CASE WHEN people IS NULL THEN TRY_CAST(tables AS VARCHAR[])
                                                   ELSE [CAST(people AS VARCHAR)] END)], lambda those:
        anon._table_calls('_event_people', those, list_transform(those, lambda one:
            ', ' || anon._quoted(CAST(person AS VARCHAR)) || ', ' || anon._quoted_list(class)), ' UNION ALL '))[1])
), _duckanon_events AS MATERIALIZED (
    FROM query(list_transform([TRY_CAST(tables AS VARCHAR[])], lambda those:
        anon._table_calls('_event_rows', those, list_transform(range(1, 1 + len(those)), lambda place:
            ', ' || anon._quoted(CAST(person AS VARCHAR)) || ', ' || anon._quoted_list(cols) || ', ' || place || ', '
                 || CASE WHEN starts_with(typeof(known), 'MAP(')
                         THEN TRY_CAST(known AS MAP(VARCHAR, BIGINT))[those[place]]
                         ELSE TRY_CAST(known AS BIGINT) END), ' UNION ALL '))[1])
), _duckanon_people AS MATERIALIZED (
    SELECT whose, row_number() OVER ()::INTEGER AS person_number, class_number
    FROM _duckanon_members
    JOIN (SELECT kind, row_number() OVER ()::INTEGER AS class_number
          FROM (SELECT DISTINCT kind FROM _duckanon_members)) USING (kind)
    WHERE anon._checked_event_people('anon.known_events', tables, cols, class, people, sensitive,
              (SELECT count(*) FILTER (whose IS NULL) FROM _duckanon_events),
              (SELECT count(*) - count(DISTINCT whose) FROM _duckanon_members),
              (SELECT count(*) FROM _duckanon_events ANTI JOIN _duckanon_members USING (whose)))
), _duckanon_held AS MATERIALIZED (
    SELECT person_number, class_number, part, number, any_value(most) AS most, count(*) AS times
    FROM _duckanon_events JOIN _duckanon_people USING (whose)
    WHERE most > 0 GROUP BY person_number, class_number, part, number
), _duckanon_rows AS MATERIALIZED (
    SELECT person_number, part, most, item, time,
           row_number() OVER (PARTITION BY person_number ORDER BY item ASC NULLS LAST, time ASC NULLS LAST)::INTEGER
               AS place
    FROM (SELECT person_number, part, most, item, unnest(range(1, least(times, most) + 1))::INTEGER AS time
          FROM _duckanon_held
          JOIN (SELECT *, row_number() OVER (ORDER BY part ASC NULLS LAST)::INTEGER AS item
                FROM (SELECT DISTINCT class_number, part, number FROM _duckanon_held)) AS items
          USING (class_number, part, number))
), _duckanon_choices AS MATERIALIZED (      -- equal rows in their order; `run` counts rows of a table
    SELECT person_number, class_number::HUGEINT AS choice, 0 AS place, 0 AS part, 0::BIGINT AS run, 0 AS size
    FROM _duckanon_people
    UNION ALL
    SELECT chosen.person_number,
           CASE WHEN size = 0 THEN item ELSE choice * 2147483648::HUGEINT + item END::HUGEINT, further.place,
           further.part, CASE WHEN chosen.part = further.part THEN run + 1 ELSE 1 END, size + 1
    FROM _duckanon_choices AS chosen JOIN _duckanon_rows AS further
         ON chosen.person_number = further.person_number AND further.place > chosen.place
            AND (further.time = 1 OR further.place = chosen.place + 1)
    WHERE size < CASE WHEN starts_with(typeof(known), 'MAP(')
                      THEN list_max(map_values(TRY_CAST(known AS MAP(VARCHAR, BIGINT))))
                      ELSE TRY_CAST(known AS BIGINT) END
          AND (chosen.part <> further.part OR run < further.most)
), _duckanon_counted AS MATERIALIZED (
    SELECT size, choice, count(*) AS held FROM _duckanon_choices GROUP BY size, choice
), _duckanon_risks AS MATERIALIZED (
    SELECT person_number, min(size) AS size
    FROM _duckanon_choices SEMI JOIN (SELECT size, choice FROM _duckanon_counted WHERE held < k) AS rare
         USING (size, choice) GROUP BY person_number
), _duckanon_unasked AS (
    SELECT NULL::INTEGER AS size, NULL::DOUBLE AS share, NULL::BIGINT AS l, NULL::DOUBLE AS t LIMIT 0
), _duckanon_told AS MATERIALIZED (         -- the values of each person; '' is that of people who have none
    SELECT person_number, coalesce('=' || told, '') AS told
    FROM _duckanon_people LEFT JOIN
         (SELECT DISTINCT whose, told
          FROM query(anon._table_calls('_event_values', list_concat(TRY_CAST(tables AS VARCHAR[]), [people::VARCHAR]),
                   list_transform(list_concat(TRY_CAST(tables AS VARCHAR[]), [people::VARCHAR]), lambda one:
                       ', ' || anon._quoted(CAST(person AS VARCHAR)) || ', ' || anon._quoted(sensitive)),
                   ' UNION ALL '))
          WHERE told IS NOT NULL) AS those USING (whose)
), _duckanon_asked AS (
    FROM anon._learned_values('_duckanon_choices', '_duckanon_counted', '_duckanon_told')
), _duckanon_sizes AS (
    SELECT *, (SELECT count(*) FROM _duckanon_people) AS everybody,
           (SELECT count(*) FROM _duckanon_risks WHERE _duckanon_risks.size <= counted.size) AS at_risk
    FROM (SELECT size, count(*) AS choices, min(held) AS held, count(*) FILTER (held < k) AS rare
          FROM _duckanon_counted GROUP BY size) AS counted
)
SELECT size AS known, choices, min(held) OVER upward AS k, rare AS rare_choices, everybody AS people,
       at_risk AS people_under_k, at_risk / everybody AS share_under_k, max(share) OVER upward AS confidence,
       min(l) OVER upward AS l, max(t) OVER upward AS t
FROM _duckanon_sizes
     LEFT JOIN query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_unasked' ELSE '_duckanon_asked' END) USING (size)
WINDOW upward AS (ORDER BY size ASC NULLS LAST ROWS UNBOUNDED PRECEDING)
ORDER BY size ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.known_events IS
    'How many people whoever knows up to m events of a person finds in linked tables, within classes of people.';
