-- anon._plan_hash: a text as the number by which a plan finds it.
CREATE OR REPLACE MACRO anon._plan_hash("text") AS CAST(hash("text") AS DOUBLE);
