-- anon._column_weights: a map from columns to weights as a list of structs (name, weight), NULL where there is none.
CREATE OR REPLACE MACRO anon._column_weights(caller, weights) AS
    CASE WHEN weights IS NULL THEN NULL
         WHEN NOT regexp_matches(typeof(weights), '^(MAP|STRUCT)\(')
              OR TRY_CAST(weights AS MAP(VARCHAR, DOUBLE)) IS NULL
              THEN error(anon._must_be(caller, 'weights', 'NULL or a map from columns to numbers such as '
                                                          || 'MAP {''income'': 3}', weights))
         ELSE list_transform(map_entries(TRY_CAST(weights AS MAP(VARCHAR, DOUBLE))),
                             lambda entry: struct_pack(name := entry['key'], weight := entry['value'])) END;
