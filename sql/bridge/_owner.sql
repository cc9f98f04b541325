-- anon._owner: whose rows are on their way to Python: connection and query in 32 bits, since it comes with every row.
CREATE OR REPLACE MACRO anon._owner() AS
    (current_connection_id() % 65536 * 65536 + current_query_id() % 65536)::UINTEGER;
