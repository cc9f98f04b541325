-- anon._refuse: stops a query with a sentence, from a scalar function that returns a number. error() would do so too,
-- but DuckDB takes it for a side effect, so that an alias of the result could not be used again in the same SELECT. A
-- cast that fails is no side effect, and its message carries the sentence.
CREATE OR REPLACE MACRO anon._refuse(sentence) AS CAST(sentence AS DOUBLE);
