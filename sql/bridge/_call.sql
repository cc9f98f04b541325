-- anon._call: the number of a new call of a Python function, by which the rows on their way to it are told from all
-- others. Python counts the calls, and remembers whose each is: a query may call twice, and a query that failed leaves
-- rows behind, which go when its connection calls again.
-- needs: python
CREATE OR REPLACE MACRO anon._call() AS TABLE
SELECT _anon_open(anon._owner()) AS call;
