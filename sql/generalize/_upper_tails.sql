-- anon._upper_tails: for each number of a list the sum of those after it.
CREATE OR REPLACE MACRO anon._upper_tails(terms) AS
    list_transform(range(1, 1 + len(terms)), lambda place: coalesce(list_sum(terms[place + 1:len(terms)]), 0));
