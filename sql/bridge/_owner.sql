-- anon._owner: whose call it is, for Python: the database, its connection, and the connection's query.
-- needs: python
CREATE OR REPLACE MACRO anon._owner() AS
    [CAST(anon._database() AS BIGINT), CAST(current_connection_id() AS BIGINT), CAST(current_query_id() AS BIGINT)];
