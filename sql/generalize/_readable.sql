-- anon._readable: the roundest number above `low` and at most `high`: a cut there separates the same values and is
-- nobody's value. Where there is none, for dates, and where `low` is NULL, `high` itself.
CREATE OR REPLACE MACRO anon._readable(low, high) AS
    coalesce(cast_to_type(CAST(list_filter(
                 list_transform(range(-15, 17),
                                lambda digits: floor(TRY_CAST(high AS DOUBLE) * pow(10, digits)) / pow(10, digits)),
                 lambda cut: cut > TRY_CAST(low AS DOUBLE) AND cut <= TRY_CAST(high AS DOUBLE))[1] AS VARCHAR), high),
             high);
