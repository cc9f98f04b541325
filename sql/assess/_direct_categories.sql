-- anon._direct_categories: those categories of anon.direct_identifiers that name a person by themselves. Places, dates
-- and ages do so only together: they are quasi-identifiers.
CREATE OR REPLACE MACRO anon._direct_categories(categories) AS
    list_filter(categories, lambda category:
                NOT list_contains(['geographic_subdivision', 'zip', 'date', 'age_over_89'], category));
