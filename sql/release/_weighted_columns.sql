-- anon._weighted_columns: the columns that are asked for and that of the weights, also where these are no names: such a
-- call is bound before it is refused (anon._checked_weights).
CREATE OR REPLACE MACRO anon._weighted_columns(cols, weights) AS
    anon._with_column(TRY_CAST(cols AS VARCHAR[]), CAST(weights AS VARCHAR));
