-- anon._role_rules: what a column's name says about the part it plays, beyond the direct identifiers of
-- anon._identifier_rules. The first rule that matches counts.
--     name_words    whole words of the plain name (anon._plain_name); # is any of number, no, num, id and the like
--     except_words  words that say that it is something else after all
--     topic         completes the sentence "it is about ..."
CREATE OR REPLACE MACRO anon._role_rules() AS TABLE
FROM (VALUES
    (1, 'person key', 'who the row belongs to',
     '(patient|pat|person|people|subject|participant|respondent|individual|customer|cust|client|user|employee|emp|staff'
     '|worker|student|pupil|member|resident|citizen|voter|donor|beneficiary|subscriber|insured|policy_?holder'
     '|tax_?payer'
     '|national|health|nhs|study)_?(#|uid|guid|uuid|key|hash|token|code)|mrn|mr_#|medical_?record(_?#)?|ssn|nino|seqn'
     '|pseudonym|pseudo_?id|user_?name|login',
     'family|household|(zip|postal?)_?code|worker_code|health_code|(member|staff|user)_?(count|type)'),
    (2, 'sensitive', 'health',
     'diagnos[ei]s|diagnostic|dx|icd|icd_?(9|10)(_?codes?)?|disease|illness|condition|symptoms?|disorder'
     '|comorbidit(y|ies)'
     '|hiv|aids|std|sti|hepatitis|cancer|tumou?r|depression|anxiety|psychiatric|mental_?health|disabilit(y|ies)'
     '|disabled'
     '|pregnan(t|cy)|abortion|contracepti(on|ve)|medications?|drugs?|prescriptions?|treatment|therapy|surgery|procedure'
     '|allerg(y|ies)|genotype|genetic|smok(er|ing|ed)|smoked?[0-9]*|alcohol|drinking|drug_use|blood_?(type'
     '|pressure|sugar)'
     '|glucose|cholesterol|hba1_?c|bmi|sbp|dbp|alb|alt|ast|alp|bun|chol|hco_?3|ggt|glu|ldh|phos|tbil|trig|crea'
     '|hdl|ldl|wbc'
     '|rbc|hgb|mcv|rdw|plt|osmo|lab_?results?|test_?results?|outcome|cause_of_death|overdose',
     'drug_?(store|plan)|air_condition(ing|er)?|terms|device_condition'),
    (3, 'sensitive', 'money',
     'income|incomes|salary|salaries|wages?|earnings?|pay|payroll|net_?worth|wealth|assets?|debts?|loans?|mortgage'
     '|credit_?(score|rating|limit)|balance|bonus|pension|benefits?|welfare|capital_?(gain|loss)(es)?|agi'
     '|fedtax|statetax'
     '|taxes|tax_?(paid|due)|taxinc|salary_class|pincp|wagp|povpip|poverty|ptotval|pothval|pearnval|wsalval'
     '|ernval|intval'
     '|emcontrb|fica',
     'pay_?(day|date|grade)|balance_sheet'),
    (4, 'sensitive', 'belief, conduct or intimate life',
     'religion|religious|faith|church|politic(s|al)|party|vote|voted|union_?member(ship)?|sexual_?\w*|orientation'
     '|gender_?identity|criminal|crimes?|offen[cs]es?|convictions?|arrests?|sentence|prison|immigration_?status|asylum'
     '|refugee|grades?|gpa|disciplinary|complaints?',
     'third_party|party_size|(pay|school|road)_grade|page_orientation'),
    (5, 'quasi-identifier', 'what others know of a person',
     'ages?|age_?(years|yrs|groups?|bands?)|agep|sex|genders?|riagendr|birth_?\w*|born|yob|year_of_birth|dob'
     '|race|ethnicity|ethnic_?\w*|rac1_?p|hisp|hispanic|ancestry|nationalit(y|ies)|citizenship|citizen|cit|nativity'
     '|(native_?|birth_?)?countr(y|ies)(_of_\w+)?|states?|province|region|city|county|town|district|puma|zips?'
     '|zip_?codes?'
     '|post_?codes?|postal(_?codes?)?|marital(_?status)?|marriage|mar|relationship|education(_?\w+)?|schl|degree|school'
     '|occupations?|occp|jobs?|job_?titles?|profession|industry|indp|work_?class|cow|esr|employer|employment(_?status)?'
     '|department|rank|household_?size|famil(y|ies)_?size|(number_of_|num_|n_)?(children|kids)|languages?|veteran'
     '|military(_?\w+)?|height|weight|hours_per_week|wkhp|wkwn|body_?\w+|hair(_?colou?r)?|eye_?colou?r',
     '(mec|sample|sampling|survey|design|final|person|replicate)_?weight|weight_?(final|factor)|state_?(code_)?version')
) AS _(rule, role, topic, name_words, except_words);
