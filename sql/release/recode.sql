-- anon.recode: a table whose columns `cols` are made coarser class by class, such that every class over them has at
-- least `k` people and no more is lost than must be. Numbers and dates become intervals; values of a hierarchy their
-- lowest common ancestor; other values the set that the class has.
--     hierarchies  as in anon.plan
--     sensitive    a column of which every class has at least `l` different values; the shares of its values are
--                  within `t` of those in the whole table (as anon.t_closeness tells distances). With
--                  l_kind := 'entropy' the entropy is at least log l, with 'recursive' the most frequent value is less
--                  frequent than c times all from the l-th on (anon.l_diversity). It is released where `keep` names it
--     weights      how much each column's loss matters: a list in the order of cols, or MAP {'age': 2}; 1 where none is
--                  given
--     person       a column that tells whose each row is: k then means k different people, and a row without one counts
--                  as nobody's. NULL: each row is another person
--     keep, narrowing  other columns to release as they are, as in anon.generalize; NULL: none
--     by           columns that are released as they are: k holds within each of their groups. Rows of groups with
--                  fewer than k people, or without l and t, are left out
--     max_suppressed_fraction  the share of the rows that may be left out so; no others are
--     effort       'quick': the start alone; 'default': 60 rounds that improve it; 'thorough': 150
--     output       'text': labels such as '[20, 34]', '>=35' and '{Cook, Nurse}'; 'value': STRUCT(lo, hi) for numbers
--                  and dates without a hierarchy, an open end is NULL, and lists of values for all others; columns
--                  with a hierarchy come first
-- At least k people share the part of a column that an end of an interval belongs to, and every value that a set names,
-- NULL too; rarer ones are called 'other'. Outer ends are open, unless k people share the value that a column ends
-- with; the unit of numbers is what all but at most k - 1 people have. NULL is a category: alone it stays NULL, among
-- numbers or in a hierarchy it makes a label '*', and in a set it is named; values that would be read as several are
-- quoted there: '{"a, b", c}'. The same table gets the same classes; the rows come in random order.
-- test: tests/release/recode.test
-- needs: python
CREATE OR REPLACE MACRO anon.recode(
    tbl, cols, k, hierarchies := NULL, sensitive := NULL, l := 1, l_kind := 'distinct', c := 3, t := NULL,
    weights := NULL, person := NULL, keep := NULL, narrowing := NULL, by := NULL, max_suppressed_fraction := 0,
    effort := 'default', output := 'text'
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(lambda name: anon._is_among(name, cols) OR anon._is_kept(name, cols, keep, person)
                                OR anon._is_among(name, [person]) OR anon._is_among(name, coalesce("by", []))
                                OR anon._is_among(name, [CAST(sensitive AS VARCHAR)]))
    FROM query_table(anon._checked_recode('anon.recode', k, max_suppressed_fraction, effort, output,
                         anon._checked_diversity('anon.recode', cols, sensitive, l, l_kind, c, t, "by", person,
                         anon._checked_person('anon.recode', person, cols,
                             anon._checked_keep('anon.recode', 'keep', keep,
                                 anon._checked_keep('anon.recode', 'by', "by",
                                     anon._checked('anon.recode', tbl, cols)))))))
)
FROM anon._unpack_recoded(anon._run_recode(anon._tickets(anon._checked('anon.recode', '"_duckanon_chosen"', cols), '',
                                                         CASE WHEN keep IS NULL AND person IS NULL AND "by" IS NULL
                                                                   AND sensitive IS NULL
                                                              THEN NULL ELSE 0 END, true),
                              {'cols': cols, 'k': k,
                               'hierarchies': (SELECT list({'column_name': column_name, 'leaf': leaf,
                                                             'level': level, 'label': label})
                                               FROM anon._hierarchies('anon.recode', hierarchies)),
                               'sensitive': sensitive, 'l': l, 'l_kind': l_kind, 'c': CAST(c AS DOUBLE),
                               't': CAST(t AS DOUBLE), 'weights': weights, 'person': person,
                               'keeps_person': anon._is_among(CAST(person AS VARCHAR), coalesce(keep, [])),
                               'keeps_sensitive': anon._is_kept(CAST(sensitive AS VARCHAR), cols, keep, person),
                               'narrowing': TRY_CAST(narrowing AS VARCHAR[]), 'by': TRY_CAST("by" AS VARCHAR[]),
                               'max_suppressed_fraction': max_suppressed_fraction, 'effort': effort, 'output': output,
                               'refused': (SELECT sentence FROM anon._refused_keep(NULL, tbl, cols, keep, person))}),
                          '"_duckanon_chosen"', cols,
                          list_concat(TRY_CAST(keep AS VARCHAR[]), TRY_CAST("by" AS VARCHAR[])), person,
                          hierarchies, output);
COMMENT ON MACRO TABLE anon.recode IS
    'A table made coarser class by class: every class has at least k people and labels of its own.';
