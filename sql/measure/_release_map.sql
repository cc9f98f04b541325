-- anon._release_map: releases and their names as a map of texts, of a MAP or a STRUCT.
CREATE OR REPLACE MACRO anon._release_map(releases) AS TRY_CAST(releases AS MAP(VARCHAR, VARCHAR));
