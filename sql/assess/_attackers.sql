-- anon._attackers: what the three attackers of El Emam's guide can expect, from the risks of prosecutor and journalist:
-- one row each, the marketer's with the journalist's average.
--     risks  name of a step: attacker, risk, size_rows (how many rows have it), is_nobody (no one can be found)
CREATE OR REPLACE MACRO anon._attackers(risks, threshold) AS TABLE
WITH _duckanon_averages AS (
    SELECT attacker, max(risk) AS maximum_risk, sum(risk * size_rows) / sum(size_rows) AS average_risk,
           coalesce(sum(size_rows) FILTER (risk > threshold), 0)::BIGINT AS rows_at_risk,
           rows_at_risk / sum(size_rows) AS fraction_at_risk,
           coalesce(sum(size_rows) FILTER (is_nobody), 0)::BIGINT AS rows_without_candidate
    FROM query_table(risks) GROUP BY attacker
)
FROM _duckanon_averages
UNION ALL
SELECT 'marketer', NULL, average_risk, NULL, NULL, rows_without_candidate
FROM _duckanon_averages WHERE attacker = 'journalist';
