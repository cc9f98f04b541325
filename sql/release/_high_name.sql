-- anon._high_name: the name of the column x_hi, from the type of the struct of the column "_duckanon_lo x"
-- (anon._intervals).
CREATE OR REPLACE MACRO anon._high_name(struct_type) AS
    substr(anon._only_name(struct_type), 1 + len('_duckanon_lo ')) || '_hi';
