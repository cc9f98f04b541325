-- anon._numbered_draws: releases of the same people as a map from numbers to tables, as anon._stacked takes them;
-- the first release alone, which stands in for them while the query is bound, where there are no others.
CREATE OR REPLACE MACRO anon._numbered_draws(caller, draws, released) AS
    CASE WHEN draws IS NULL THEN map(['1'], [CAST(released AS VARCHAR)])
         WHEN coalesce(len(TRY_CAST(draws AS VARCHAR[])), 0) = 0
              OR len(list_filter(TRY_CAST(draws AS VARCHAR[]), lambda named: coalesce(trim(named), '') = '')) > 0
              THEN error(anon._must_be(caller, 'draws', 'NULL or a list of tables such as [''second'', ''third'']',
                                       draws))
         ELSE map(list_transform(range(1, 1 + len(TRY_CAST(draws AS VARCHAR[]))), lambda place: CAST(place AS VARCHAR)),
                  TRY_CAST(draws AS VARCHAR[])) END;
