-- anon._masked: a text with a star for each of its characters but the first and last ones to keep, and but for those
-- that a class of a regular expression calls its structure, which are not counted. Where the ones to keep are all that
-- there are, none is kept. Spark's regular expressions count groups from 1, so that the group is named.
CREATE OR REPLACE MACRO anon._masked("text", structure, hidden, keep_first, keep_last) AS
    CASE WHEN length(regexp_replace("text", structure, '', 'g')) <= keep_first + keep_last
              THEN regexp_replace("text", hidden, '*', 'g')
         ELSE list_transform(
                  [{'whole': "text",
                    'beginning': regexp_extract("text", '^(?:' || structure || '*' || hidden || '){'
                                                        || CAST(keep_first AS VARCHAR) || '}', 0),
                    'ending': regexp_extract("text", '(?:' || hidden || structure || '*){'
                                                     || CAST(keep_last AS VARCHAR) || '}$', 0)}],
                  lambda parts: parts.beginning
                      || regexp_replace(left(right(parts.whole, length(parts.whole) - length(parts.beginning)),
                                             length(parts.whole) - length(parts.beginning) - length(parts.ending)),
                                        hidden, '*', 'g')
                      || parts.ending)[1] END;
