-- anon._applied: the planned columns of a table as a plan labels them, and the columns to keep, as they are released.
--     cols  the planned columns, where they are known before the plan is read: ['*'] in `keep` does not mean them
-- The names of the planned columns are those of the struct in the plan's column `released`, since a query's columns
-- must be known before any row is read: a cast between structs takes the fields that both have.
CREATE OR REPLACE MACRO anon._applied(caller, tbl, cols, plan, keep) AS TABLE
WITH _duckanon_packed AS (
    SELECT *, struct_pack(*COLUMNS(lambda name: anon._is_kept(name, cols, keep, NULL))) AS _duckanon_kept
    FROM anon._labelled_cells(caller, anon._checked_keep(caller, 'keep', keep,
                                          anon._checked_names(caller, 'keep', keep,
                                              anon._checked_names(caller, 'cols', cols, tbl))), plan)
), _duckanon_labels AS (                               -- NULL where a column is not planned
    SELECT struct_extract(COLUMNS(* EXCLUDE (_duckanon_kept, _duckanon_none)), 'label'), _duckanon_kept
    FROM _duckanon_packed
), _duckanon_rows AS (
    SELECT struct_pack(*COLUMNS(* EXCLUDE (_duckanon_kept))) AS _duckanon_labels, unnest(_duckanon_kept)
    FROM _duckanon_labels
), _duckanon_values AS (
    SELECT _duckanon_labels, anon._released_value(COLUMNS(* EXCLUDE (_duckanon_labels))) FROM _duckanon_rows
)
SELECT unnest(struct_extract(
           {'planned': cast_to_type(_duckanon_labels, _duckanon_plan._duckanon_released),
            'lost': {'plan': CASE WHEN NOT starts_with(typeof(_duckanon_plan._duckanon_released), 'STRUCT(')
                                  THEN error(caller || ': plan must have a column released, a STRUCT of its columns; '
                                             || 'got one without, as plans come back from CSV: store it as a table or '
                                             || 'as Parquet.') END}},
           CASE WHEN starts_with(typeof(_duckanon_plan._duckanon_released), 'STRUCT(') THEN 'planned'
                ELSE 'lost' END)),
       * EXCLUDE (_duckanon_labels, _duckanon_none, _duckanon_released)
FROM _duckanon_values
     LEFT JOIN (SELECT coalesce(released, '{}') AS _duckanon_released  -- beside a text an untyped NULL has a type
                FROM query_table(plan) LIMIT 0) AS _duckanon_plan ON true
WHERE anon._unless(coalesce(
          (SELECT sentence FROM anon._refused_keep(caller, tbl, cols, keep, NULL)),
          (SELECT caller || ': keep must not name a column of the plan; got "' || min(column_name) || '".'
           FROM query_table(plan) WHERE anon._is_among(column_name, keep))));
