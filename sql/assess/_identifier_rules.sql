-- anon._identifier_rules: how direct identifiers are recognised, a row per category of the HIPAA safe-harbor rule.
--     name_words    whole words of a column's name; # is any of number, no, num, id and the like
--     except_words  words that say that it is something else after all
--     shapes        shapes of anon._value_shapes that are enough by themselves
--     named_shapes  shapes that confirm the name
CREATE OR REPLACE MACRO anon._identifier_rules() AS TABLE
SELECT rule[1] AS rule, rule[2] AS category, rule[3] AS hipaa_item, rule[4] AS name_words, rule[5] AS except_words,
       rule[6] AS shapes, rule[7] AS named_shapes, rule[8] AS action
FROM (SELECT unnest(anon._identifier_rule_list()) AS rule);
