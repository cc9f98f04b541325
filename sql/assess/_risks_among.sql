-- anon._risks_among: the risks of a journalist who has a table of the population: how many rows are in classes of each
-- risk, and how many people have no larger one. A class has at least as many people in the population as in the table;
-- where it has nobody whose name is known the risk is 1.
CREATE OR REPLACE MACRO anon._risks_among(caller, tbl, cols, population, nulls, person) AS TABLE
WITH _among_members AS MATERIALIZED (
    FROM anon._population_members(caller, tbl, cols, population, nulls, person)
), _among_classes AS MATERIALIZED (
    SELECT class, row_count, sample_people, 1 / greatest(population_people, sample_people, 1) AS risk
    FROM anon._population_classes('_among_members', person)
    WHERE row_count > 0
), _among_people AS (
    SELECT max(risk) AS risk
    FROM _among_members JOIN _among_classes USING (class)
    WHERE is_sample AND member IS NOT NULL
    GROUP BY member
)
SELECT risk, sum(people)::BIGINT AS people, sum(row_count)::BIGINT AS row_count
FROM (SELECT risk, row_count, CASE WHEN person IS NULL THEN row_count ELSE 0 END AS people FROM _among_classes
      UNION ALL
      SELECT risk, 0, 1 FROM _among_people)
GROUP BY risk;
