-- anon._awaited: the number of a task that Python has begun, once it is done. Python is asked block after block of an
-- endless range; between two blocks DuckDB looks whether the query was interrupted. The range comes first: it must be
-- the side of the join that is streamed, also where the optimizer is switched off.
-- needs: python
CREATE OR REPLACE MACRO anon._awaited(begun) AS (
    SELECT task
    FROM range(1000000000000) AS _duckanon_turns(turn), (SELECT begun AS task LIMIT 1) AS _duckanon_task
    WHERE _anon_wait(task, turn) LIMIT 1);
