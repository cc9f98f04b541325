-- anon._identifier_rules: how direct identifiers are recognised, a row per category of the HIPAA safe-harbor rule.
--     name_words    whole words of a column's name; # is any of number, no, num, id and the like
--     except_words  words that say that it is something else after all
--     shapes        shapes of anon._value_shapes that are enough by themselves
--     named_shapes  shapes that confirm the name
CREATE OR REPLACE MACRO anon._identifier_rules() AS TABLE
SELECT unnest(list_transform(anon._identifier_rule_list(), lambda entry:
           {'rule': entry[1], 'category': entry[2], 'hipaa_item': entry[3], 'name_words': entry[4],
            'except_words': entry[5], 'shapes': entry[6], 'named_shapes': entry[7], 'action': entry[8]}),
       max_depth := 2);
