-- anon.explain_plan: a plan in one row per column: how it is made coarser, into how many values, and what that costs.
--     distinct_before  values that it was fitted on, but for those of which no row is released
--     distinct_after   labels that they became, of which rows are released
--     allowed          values that the budget of the population allows it (anon.allocate), from which the search
--                      begins; NULL for a plan without a population
--     budget_share     its part of the number of combinations, ln(distinct_after) over the sum of these: the shares add
--                      up to 1
--     expected_loss    share of the column's other values that a released row's label holds too, on average: 0 nothing
--                      lost, 1 everything. anon.generalization_loss says what a release loses of the range of numbers,
--                      with the rows that are left out
-- test: tests/generalize/explain_plan.test
CREATE OR REPLACE MACRO anon.explain_plan(plan) AS TABLE
SELECT column_name, method, distinct_before, distinct_after, allowed,
       coalesce(ln(distinct_after) / nullif(sum(ln(distinct_after)) OVER (), 0), 0) AS budget_share,
       coalesce(expected_loss / nullif(distinct_before - 1, 0), 0) AS expected_loss
FROM (SELECT column_name, any_value(method) AS method, sum(distinct_values)::BIGINT AS distinct_before,
             greatest(count(DISTINCT coalesce('=' || label, '')) FILTER ("rows" > 0), 1) AS distinct_after,
             any_value(allowed) AS allowed, sum("rows" * (distinct_values - 1)) / sum("rows") AS expected_loss
      FROM query_table(anon._checked('anon.explain_plan', plan, ['*']))
      GROUP BY column_name)
ORDER BY column_name ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.explain_plan IS
    'A plan in one row per column: method, distinct values before and after, share of the budget, expected loss.';
