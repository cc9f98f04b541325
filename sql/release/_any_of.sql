-- anon._any_of: a regular expression that matches any of some texts, and one of our own, so that there is one.
CREATE OR REPLACE MACRO anon._any_of(texts) AS
    anon._joined(list_transform(list_concat(CAST(texts AS VARCHAR[]), ['_duckanon_none']),
                                lambda content: regexp_escape(content)), '|');
