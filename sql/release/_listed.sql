-- anon._listed: the list of values that Python wrote as one text, with chr(31) between them and chr(30) for NULL.
CREATE OR REPLACE MACRO anon._listed(written) AS
    list_transform(string_split(written, chr(31)), lambda value: nullif(value, chr(30)));
