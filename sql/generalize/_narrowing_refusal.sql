-- anon._narrowing_refusal: the sentence that refuses kept columns which narrow coarse ones; NULL where none does.
-- (duckanon._core.privacy.narrowing.describe_pairs is the same in Python)
--     pairs  a list of {'kept_column', 'column_name', 'narrows'}, with NULL where too few rows tell
CREATE OR REPLACE MACRO anon._narrowing_refusal(caller, pairs, ways_out) AS
    CASE WHEN len(pairs) > 0 THEN
        caller || ': '
        || anon._joined(list_filter(list_transform(
               [{'found': list_filter(pairs, lambda pair: pair['narrows']), 'beginning': 'the column '},
                {'found': list_filter(pairs, lambda pair: pair['narrows'] IS NULL),
                 'beginning': 'there are too few rows to tell whether the column '}], lambda told:
               CASE WHEN len(told.found) > 0
                    THEN told.beginning || '"' || told.found[1]['kept_column'] || '" in keep narrows down "'
                         || told.found[1]['column_name'] || '"'
                         || anon._joined(list_transform(told.found[2:len(told.found)], lambda pair:
                                ', "' || pair['kept_column'] || '" narrows down "' || pair['column_name'] || '"'), '')
                    END), lambda words: words IS NOT NULL), ', ')
        || '; ' || replace(ways_out, '{it}',
                           CASE WHEN len(list_distinct(list_transform(pairs, lambda pair: pair['kept_column']))) = 1
                                THEN 'it' ELSE 'them' END)
        || '.'
    END;
