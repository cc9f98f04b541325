-- anon._class_repeats: in each class where people have several sensitive values, by how many the sum of its cells
-- exceeds the number of its people.
--     members  name of a step with rows of anon._sensitive_members
CREATE OR REPLACE MACRO anon._class_repeats(members) AS TABLE
SELECT class, sum(times - 1)::BIGINT AS repeats
FROM (SELECT class, count(*) AS times FROM query_table(members) WHERE member IS NOT NULL
      GROUP BY class, member HAVING count(*) > 1)
GROUP BY class;
