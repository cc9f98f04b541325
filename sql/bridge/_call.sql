-- anon._call: the number of one call of a Python function, by which the rows on their way to it are told from all
-- others: the connection (24 bits), its query (8 bits) and a random number (31 bits), since a query may call twice. It
-- is a single number because it travels with every row.
CREATE OR REPLACE MACRO anon._call() AS TABLE
SELECT ((current_connection_id() % 16777216 * 256 + current_query_id() % 256)::BIGINT << 31)
       + (random() * 2147483647)::BIGINT AS call;
