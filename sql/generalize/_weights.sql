-- anon._weights: how much each column matters: 1 each where nothing is said.
CREATE OR REPLACE MACRO anon._weights(distinct_counts, weights) AS
    CAST(coalesce(weights, list_transform(distinct_counts, lambda d: 1)) AS DOUBLE[]);
