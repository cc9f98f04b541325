{# Fails where a class over the columns has fewer than k people (without `person`: rows). It returns counts only, since
   dbt may store what a test returns. #}
{% test k_anonymous(model, columns, k, person=none) %}
SELECT k, rows_under_2 AS rows_alone
FROM anon.k_anonymity('{{ model.schema }}.{{ model.identifier }}', ['{{ columns | join("', '") }}']
                      {%- if person %}, person := '{{ person }}'{% endif %})
WHERE k < {{ k }}
{% endtest %}
