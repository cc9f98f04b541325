-- anon._checked_releases: true where an argument is a map from names to tables, else an error that says so.
CREATE OR REPLACE MACRO anon._checked_releases(caller, releases) AS
    CASE WHEN releases IS NULL OR NOT regexp_matches(typeof(releases), '^(MAP|STRUCT)\(')
              OR coalesce(cardinality(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), 0) = 0
              THEN error(anon._must_be(caller, 'releases',
                                       'a map from names to tables such as MAP {''swapped'': ''svd''}', releases))
         WHEN len(list_filter(map_values(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))),
                              lambda named: coalesce(trim(named), '') = '' OR anon._is_own_name(named))) > 0
              THEN error(anon._must_be(caller, 'releases',
                                       'a map to names of tables, none of them empty or beginning with _duckanon_',
                                       releases))
         ELSE true END;
