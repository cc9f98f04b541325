-- anon._map_names: the names that a MAP or STRUCT from columns to something has; none where it is NULL.
CREATE OR REPLACE MACRO anon._map_names(named) AS
    coalesce(map_keys(TRY_CAST(named AS MAP(VARCHAR, VARCHAR))), []);
