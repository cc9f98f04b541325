-- anon.containment_risk: the probability that an attacker who knows a person's values finds the right row of a
-- generalized release, whose cells contain the values of several people, for the three attackers of
-- anon.reidentification_risk:
--     prosecutor                  knows that the person is in the table: 1 / released rows that contain the person
--                                 (anon.containment_candidates)
--     journalist                  does not know it. With a population table: takes a released row, 1 / people of the
--                                 population whom it contains; with the number of people in the population: expected
--                                 from the number of candidates
--     marketer                    wants as many people as possible: only the average counts
--     maximum_risk, average_risk, rows_at_risk, fraction_at_risk  over the original's rows; with a population table,
--                                 over the released ones. At risk is a row above
--                                 `threshold`
--     rows_without_candidate      nobody is found: suppressed or not covered, risk 0
--     cols                        columns that both tables have, exact in the original and generalized in the release
--                                 [a list of names]
--     population                  number of people that the original is a sample of, or name of a table of all of them
--                                 with the columns; NULL: the original is its own population [a number, a text, or
--                                 NULL]
--     hierarchies                 as in anon.generalization_loss
--     threshold                   a row is at risk if its risk is above this [a number from 0 to 1]
-- promises: Between(0, 1, 'maximum_risk', 'average_risk', 'fraction_at_risk'), InvariantUnder(*TABLE)
-- test: tests/measure/containment_risk.test
CREATE OR REPLACE MACRO anon.containment_risk(
    original, released, cols, population := NULL, hierarchies := NULL, threshold := 0.2
) AS TABLE
WITH _duckanon_shown_lists AS MATERIALIZED (
    FROM anon._cell_lists('anon.containment_risk',
                          anon._checked_table('anon.containment_risk', 'released', released,
                              anon._checked('anon.containment_risk', released, cols)), cols)
), _duckanon_shown AS MATERIALIZED (
    SELECT place, label, sum(size)::BIGINT AS size
    FROM (SELECT unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS label, size FROM _duckanon_shown_lists)
    GROUP BY place, label
), _duckanon_everyone AS MATERIALIZED (                -- a name that begins with a space is nobody's column
    SELECT true AS " is original", COLUMNS(cols)
    FROM query_table(anon._checked_table('anon.containment_risk', 'original', original,
             anon._checked_fraction('anon.containment_risk', 'threshold', threshold,
                 anon._checked('anon.containment_risk', original, cols))))
    UNION ALL BY NAME
    SELECT false AS " is original", COLUMNS(cols)
    FROM query_table(CASE WHEN typeof(population) = 'VARCHAR' THEN CAST(population AS VARCHAR) ELSE original END)
    WHERE typeof(population) = 'VARCHAR'
), _duckanon_original AS (
    SELECT COLUMNS(cols) FROM _duckanon_everyone WHERE " is original"
), _duckanon_population AS (
    SELECT COLUMNS(cols) FROM _duckanon_everyone WHERE NOT " is original"
), _duckanon_lists AS MATERIALIZED (                   -- both together: each combination is looked for once
    SELECT cells, sum(inside)::BIGINT AS size, sum(outside)::BIGINT AS outside
    FROM (SELECT cells, size AS inside, 0 AS outside
          FROM anon._cell_lists('anon.containment_risk', '_duckanon_original', cols)
          UNION ALL
          SELECT cells, 0, size FROM anon._cell_lists('anon.containment_risk', '_duckanon_population', cols))
    GROUP BY cells
), _duckanon_label_rules AS MATERIALIZED (
    FROM anon._label_rules('anon.containment_risk', '_duckanon_everyone', '_duckanon_shown', cols, hierarchies)
), _duckanon_rules AS MATERIALIZED (
    FROM anon._exact_rules('_duckanon_label_rules')
), _duckanon_parts AS MATERIALIZED (
    FROM anon._label_parts('_duckanon_lists', '_duckanon_rules')
), _duckanon_classes AS MATERIALIZED (
    FROM anon._release_classes('_duckanon_shown_lists', '_duckanon_rules', '_duckanon_parts')
), _duckanon_found AS MATERIALIZED (
    FROM anon._containment('_duckanon_lists', '_duckanon_rules', '_duckanon_parts', '_duckanon_classes')
), _duckanon_sizes AS MATERIALIZED (                   -- all that matters: how many rows have how many candidates
    SELECT candidates, sum(people)::BIGINT AS size_rows
    FROM anon._candidate_counts('_duckanon_found', '_duckanon_classes') WHERE people > 0 GROUP BY candidates
), _duckanon_held AS (                                 -- the same bits need to be looked at once
    SELECT block, bits, sum(outside) AS people FROM _duckanon_found WHERE block IS NOT NULL GROUP BY block, bits
), _duckanon_sizes_outside AS (
    SELECT people, sum(size)::BIGINT AS size_rows
    FROM (SELECT any_value(classes.size) AS size,
                 coalesce(sum(held.people) FILTER (get_bit(held.bits, classes.class::INTEGER) = 1), 0) AS people
          FROM _duckanon_classes AS classes LEFT JOIN _duckanon_held AS held ON held.block = classes.block
          GROUP BY classes.shown_class)
    GROUP BY people
), _duckanon_universe AS MATERIALIZED (
    SELECT row_count, row_count / anon._checked_population('anon.containment_risk',
                          CASE WHEN typeof(population) = 'VARCHAR' THEN NULL ELSE population END, row_count) AS sampled
    FROM (SELECT coalesce(sum(size_rows), 0)::BIGINT AS row_count FROM _duckanon_sizes)
), _duckanon_risks AS (
    SELECT 'prosecutor' AS attacker, size_rows, candidates = 0 AS is_nobody,
           CASE WHEN candidates = 0 THEN 0.0::DOUBLE ELSE 1 / candidates END AS risk
    FROM _duckanon_sizes, _duckanon_universe WHERE sampled IS NOT NULL          -- so that a wrong population is refused
    UNION ALL
    SELECT 'journalist', size_rows, candidates = 0,
           CASE WHEN candidates = 0 THEN 0.0::DOUBLE ELSE anon._expected_risk(candidates, sampled) END
    FROM _duckanon_sizes, _duckanon_universe WHERE typeof(population) <> 'VARCHAR'
    UNION ALL
    SELECT 'journalist', size_rows, people = 0, CASE WHEN people = 0 THEN 0.0::DOUBLE ELSE 1 / people END
    FROM _duckanon_sizes_outside WHERE typeof(population) = 'VARCHAR'
)
FROM anon._attackers('_duckanon_risks', threshold)
ORDER BY list_position(['prosecutor', 'journalist', 'marketer'], attacker) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.containment_risk IS
    'Prosecutor, journalist and marketer risk of a generalized release.';
