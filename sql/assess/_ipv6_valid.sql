-- anon._ipv6_valid: whether a text is an IPv6 address: eight groups of up to four hexadecimal digits, or fewer with one
-- '::' that stands for the missing groups; the last two may be written as an IPv4 address; a zone (%eth0) or a prefix
-- length (/64) may follow.
--     address_text: the address
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon._ipv6_valid(address_text) AS
CASE WHEN regexp_full_match(address_text, '[0-9A-Fa-f:]*:[0-9A-Fa-f:]*([0-9]{1,3}(\.[0-9]{1,3}){3})?'
                                          '(%[0-9A-Za-z]+)?(/[0-9]{1,3})?')
     THEN list_transform(
              [regexp_replace(regexp_replace(address_text, '[%/].*', ''), '[0-9]{1,3}(\.[0-9]{1,3}){3}', '0:0')],
              lambda plain: regexp_full_match(plain, '([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}')
                            OR (regexp_full_match(plain, '(([0-9A-Fa-f]{1,4}:)*[0-9A-Fa-f]{1,4})?::'
                                                         '(([0-9A-Fa-f]{1,4}:)*[0-9A-Fa-f]{1,4})?')
                                AND len(regexp_extract_all(plain, '[0-9A-Fa-f]+')) <= 7))[1]
     WHEN address_text IS NOT NULL THEN false END;
COMMENT ON MACRO anon._ipv6_valid IS 'Whether a text is an IPv6 address.';
