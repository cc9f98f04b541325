-- anon.plan: how each of the columns is to be made coarser so that no one stands out, as a table: one row per bucket or
-- category. It can be read (anon.explain_plan), edited, stored, and applied to any table with these columns
-- (anon.apply_plan). Of all plans under which every class has at least `k` people, the one that loses least is searched
-- for; rows that break this, at most `max_suppressed_fraction`, are to be left out (anon.generalize does so).
--     person       name of the column that says whose row it is: classes then have k different people; NULL: every row
--                  is a person
--     sensitive, l, l_kind, c, t   as in anon.generalize
--     population, beta   as in anon.generalize; the search begins with what anon.distinct_budget allows each column
--     weights      how much each column matters: a list in the order of cols, or MAP {'age': 2}; 1 where none is given
--     hierarchies  MAP {'education': 'education_tree'}: tables of value, label of level 1, of level 2, ...
--     methods      MAP {'zip': 'prefix'}; where none is given: hierarchy where there is one, interval for numbers,
--                  calendar for dates, prefix for codes of one length with digits, top (frequent values and "other")
--                  for all others. Also round: steps of 1, 2, 5 times a power of ten
-- A row covers a number or time from `lower` on (NULL: an open end), a value, a prefix, null, or the rest; `rows` are
-- those that are released, `allowed` is the column's share of the budget. No row of a plan has fewer than k people, and
-- no end of an interval is a value that fewer of them have. Labels are decided by the rows that are released alone (but
-- with the table of a population): who is left out shows in none. What a plan loses, and how many values a row of it
-- covers, are not among its columns: a share of a column's range would tell the largest value, even of someone who is
-- left out, and a number of values whether a person's is another than all others. `released` is empty: its type tells
-- anon.apply_plan the columns before it reads the rows.
--     (Probabilistic Anonymity, Sections 3 and 4)
-- test: tests/generalize/plan.test
-- needs: python
CREATE OR REPLACE MACRO anon.plan(
    tbl, cols, k, beta := 0.1, population := NULL, weights := NULL, hierarchies := NULL,
    max_suppressed_fraction := 0.01, methods := NULL, person := NULL, sensitive := NULL, l := 1, l_kind := 'distinct',
    c := 3, t := NULL
) AS TABLE
FROM anon._planned('anon.plan', tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods,
                   person, sensitive, l, l_kind, c, t, NULL);
COMMENT ON MACRO TABLE anon.plan IS
    'How each column is to be made coarser so that every class has at least k people: one row per bucket.';
