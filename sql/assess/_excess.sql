-- anon._excess: by how much the most frequent value outweighs all others together; infinite where there are no others,
-- also on connections where a division by 0 is an error.
CREATE OR REPLACE MACRO anon._excess(largest, total) AS
    CASE WHEN total = largest THEN CAST('inf' AS DOUBLE) ELSE largest / nullif(total - largest, 0) END;
