-- anon._unpack_predictions: the lists that anon.prediction_risk got back from Python, turned into rows: the record, its
-- measures, and the uncertainty by column. The empty sides of the joins bring names and types. Names that begin with a
-- space are used inside for what is measured: nobody's columns are called so.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_predictions(result, tbl, cols) AS TABLE
SELECT record, distance, ambiguity, uncertainty,
       map(list_transform(prefixed_names,
                          lambda prefixed: prefixed[len(' uncertainty of ') + 1:len(prefixed)]), by_column)
           AS column_uncertainty
FROM (SELECT struct_pack(*COLUMNS(cols)) AS record, " distance" AS distance, " ambiguity" AS ambiguity,
             " uncertainty" AS uncertainty,
             [UNPACK(alias(COLUMNS(lambda name: starts_with(name, ' uncertainty of '))))] AS prefixed_names,
             [UNPACK(COLUMNS(lambda name: starts_with(name, ' uncertainty of ')))] AS by_column
      FROM (SELECT unnest(anon._slot(_py._duckanon_released, alias(COLUMNS(_duckanon_typed.*)),
                                     COLUMNS(_duckanon_typed.*))),
                   unnest(anon._released(_py._duckanon_released, ' distance').f) AS " distance",
                   unnest(anon._released(_py._duckanon_released, ' ambiguity').f) AS " ambiguity",
                   unnest(anon._released(_py._duckanon_released, ' uncertainty').f) AS " uncertainty",
                   unnest(anon._released(_py._duckanon_released, alias(COLUMNS(_duckanon_uncertainties.*))).f)
            FROM (SELECT result AS _duckanon_released LIMIT 1) AS _py
                 LEFT JOIN (FROM query_table(tbl) LIMIT 0) AS _duckanon_typed ON true
                 LEFT JOIN (SELECT COLUMNS('(.*)') AS ' uncertainty of \1' FROM query_table(tbl) LIMIT 0)
                        AS _duckanon_uncertainties ON true));
