-- anon._weights: how much each column matters: 1 each where no weights are given.
CREATE OR REPLACE MACRO anon._weights(distinct_counts, weights) AS
    CAST(coalesce(weights, list_transform(distinct_counts, lambda distinct_count: 1)) AS DOUBLE[]);
