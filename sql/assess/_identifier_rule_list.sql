-- anon._identifier_rule_list: how direct identifiers are recognised, a row per category of the HIPAA safe-harbor rule,
-- as one value, which is known when a query is bound: number, category, item of the rule, then
--     4, 5  whole words of a column's name, # being any of number, no, num, id and the like; words that say that it is
--           something else after all
--     6, 7  shapes of anon._value_shapes that are enough by themselves, and those that confirm the name
--     8     what to do
CREATE OR REPLACE MACRO anon._identifier_rule_list() AS [
    row(1, 'name', 'A',
     'names?|sur_?names?|fore_?names?|(first|middle|last|full|given|family|maiden|nick)_?names?|[fml]name|initials'
     '|next_of_kin',
     '(user|login|host|domain|server|file|path|dir|folder|sheet|column|col|field|variable|var|attribute|table|schema'
     '|database|db|app|package|function|method|module'
     '|product|brand|model|make|item|drug|med|medication|medicine|generic|trade|ingredient|vaccine|food|chemical'
     '|compound|element'
     '|country|state|nation|region|province|continent|city|county|town|street|road|district|village|municipality|site'
     '|location|place'
     '|disease|diagnosis|condition|procedure|test|lab|assay|analyte|species|common|scientific|taxon|gene|protein'
     '|organism|breed'
     '|event|job|role|position|title|category|class|group|type|unit|department|dept|ward|course|study|trial'
     '|project|task|team|form|question'
     '|metric|measure|indicator|label|color|colour|language|currency|month|day|weekday|code|service|plan|facility'
     '|hospital|clinic|school|university'
     '|company|organi[sz]ation|org|business|vendor|supplier|store|shop|bank|device|vehicle|policy|source|status|tag'
     '|topic|parameter|feature)_?names?',
     [], [], 'remove'),
    row(2, 'geographic_subdivision', 'B',
     'address(es)?|addr|street|(street|home|postal|mailing)_?addr(ess)?|house_#|apartment|apt|po_box|city|county|town'
     '|village|municipality|borough|suburb'
     '|neighbou?rhood|precinct|parish|district|census_(tract|block)|block_group|fips|puma|cbsa|msa|geo_?(code|hash|loc'
     '|location|point)|gps|coordinates?'
     '|lat|latitude|lon|lng|longitude|lat_?(lon|lng|long)|birth_?place|place_of_(birth|death|residence)|residence',
     '(ip|ipv4|ipv6|mac|e_?mail|web|url|remote|memory|bus|wallet|block|contract)_?addr(ess)?(es)?|(state|country)_fips'
     '|fips_(state|country)'
     '|lat_(ms|us|ns)|(state|country|region)_of_residence|residence_(state|country|region)|city_center|(color'
     '|colour)_coordinates?',
     [], [], 'remove, keep the state'),
    row(3, 'zip', 'B',
     'zips?|zip_?codes?|zip_?plus|post_?codes?|postal(_?codes?)?|plz',
     'zip_(file|path|archive)|cpt|hcpcs|icd|ndc|loinc|snomed|drg|naics|isic|sic|soc|occupation|industry|product|sku'
     '|item|part|order|invoice|salary|price|amount|count',
     ['zip'], ['zip', 'zip_digits'], 'keep the first three digits, 000 where 20,000 or fewer people live there'),
    row(4, 'date', 'C',
     'dates?|date_?times?|timestamps?|dt|dob|dod|dos|doa|birth_?(date|dt|day|month)s?|date_?of_?(birth|death|service'
     '|admission|discharge)|(month|day|week)_of_(birth|death)'
     '|(birth|death|admission|admit|discharge|visit|service|procedure|surgery|encounter|diagnosis)_(date|dt|day|month'
     '|week|time)',
     'years?|yr|yob|up_to_date|expir(y|ation)_date_format|software_date',
     ['date'], ['date', 'date_digits'], 'keep the year only'),
    row(5, 'age_over_89', 'C',
     'ages?|age_?(years|yrs|in_years)',
     '(account|vehicle|car|house|building|property|equipment|device|domain|bone|stone|ice|bronze|iron|new|gestational'
     '|legal|voting|minimum|maximum|tree|file|cache)_age'
     '|age_(adjusted|standardi[sz]ed|limit|rating|weight|gap|diff|difference|months|days|weeks)|page|ages?_(groups?'
     '|bands?|cat|categories|categor(y|ies)|range|ranges|bins?|class|bracket|bucket)',
     [], ['over_89_digits'], 'make 90 or older one category'),
    row(6, 'phone', 'D',
     'phones?|(tele|cell|mobile|home|work)_?phones?|phone_?#|telephone_?#|tel|tel_?#|telno|mobile_?#|mobile$|cell_?#'
     '|cell_?phone|msisdn|pager|contact_(no|num|number)',
     'phone_(bill|calls?|plan|app|time|minutes|hours|brand|price)|fax',
     ['phone'], ['phone', 'phone_digits'], 'remove'),
    row(7, 'fax', 'E', 'fax|fax_?#|tele_?fax|facsimile', 'fax_machine', [], ['phone', 'phone_digits'], 'remove'),
    row(8, 'email', 'F', 'e_?mails?|e_?mail_?(address(es)?|addr|id)', 'e_?mail_(subject|body|client|provider|domain'
                                                            '|template|campaign|opens?|clicks?|opt|sent'
                                                            '|marketing)', ['email'], ['email'], 'remove'),
    row(9, 'ssn', 'G', 'ssn|ssns|ssn_?#|social_?security(_?#)?|soc_?sec(_?#)?', 'social_security_(benefits?|income'
                                                                             '|payments?|tax)',
     ['ssn'], ['ssn', 'ssn_digits'], 'remove'),
    row(10, 'medical_record_number', 'H',
     'mrn|mrns|mr_#|medical_?record(_?#)?|med_?rec(_?#)?|(health|chart|ehr|emr|nhs|patient_record)_?#|(patient|pat|pt'
     '|hospital)_(no|nr|num|number)',
     'medical_record_(system|format|vendor)', [], [], 'remove'),
    row(11, 'health_plan_number', 'I',
     '(health_?plan|health_?insurance|insurance|insurance_policy|policy|policy_?holder|beneficiary|subscriber|member'
     '|medicare|medicaid|insured|payer|payor|plan_member)_?#|mbi|hicn',
     NULL, [], [], 'remove'),
    row(12, 'account_number', 'J',
     '(account|acct)s?_?#|(bank_?)?(account|acct)$|iban|ibans|(credit|debit|payment|bank)_?cards?(_?#)?$|(card|cc'
     '|ccn)_?#|ccn',
     NULL, ['iban', 'card'], ['iban', 'card'], 'remove'),
    row(13, 'license_number', 'K',
     'licen[cs]e(_?#)?$|(drivers?_?|driving_?)?licen[cs]e_?#|(drivers?|driving|medical|nursing|pilot'
     '|professional)_?(licen[cs]e|lic)(_?#)?|dl_#|(certificate|certification|cert)_?#|passport|passport_?#|npi|dea_?#',
     'plates?|software_licen[cs]e', [], [], 'remove'),
    row(14, 'vehicle', 'L',
     'vin|vins|vin_?#|vehicle_?(#|identification(_?#)?|registration(_?#)?|reg)|(licen[cs]e|number|registration|car'
     '|vehicle)_?plates?(_?#)?|plate_(no|nr|num|number)',
     'vin_(rouge|blanc|rose)', ['vin'], ['vin'], 'remove'),
    row(15, 'device', 'M',
     'imei|imsi|meid|iccid|udid|idfa|gaid|idfv|udi|device_?(#|uid|uuid|serial|token|fingerprint)(_?#)?|serial_?(no|nr'
     '|num|number)|serial$|mac$|mac_?addr(ess)?(es)?|(advertising|android|implant|pacemaker)_?#',
     NULL, ['mac'], ['mac', 'card', 'code'], 'remove'),
    row(16, 'url', 'N', 'urls?|uris?|web_?(site|page|address|link)|home_?page|(profile|linkedin|facebook|twitter)_?(url'
                     '|link|page)', NULL, ['url'], ['url'], 'remove'),
    row(17, 'ip_address', 'O', 'ips?|ipv[46]|ip_?v?[46]?_?addr(ess)?(es)?|remote_addr', 'ip_(protocol|version|rights?'
                                                            '|op)', ['ip'], ['ip'], 'remove'),
    row(18, 'biometric', 'P',
     'biometrics?|(finger|voice|palm|foot|face|ear)_?prints?|(retina|retinal|iris|fingerprint|facial|face'
     '|palm)_?(scans?|template|code|embedding|encoding|geometry)|face_?#|dna_(profile|sequence)',
     '(device|browser)_fingerprints?', [], [], 'remove'),
    row(19, 'photo', 'Q',
     'photos?|photographs?|(face|facial|patient|profile|person|user)_?(image|picture|pic|img)s?|head_?shots?'
     '|mug_?shots?|portraits?|selfies?|avatars?|full_?face',
     NULL, [], [], 'remove'),
    row(20, 'unique_code', 'R',
     '(patient|pat|person|people|subject|participant|respondent|individual|customer|cust|client|user|employee|emp'
     '|staff|worker|student|pupil|resident|citizen|voter|donor'
     '|case|encounter|visit|admission|stay|claim|household|family|provider|physician|doctor|nurse|contact|owner|tax'
     '|tax_?payer|national|identity)_?(#|uid|guid|uuid|key|hash|token)'
     '|uuid|guid|user_?names?|login|login_?names?|screen_?names?|itin|nino|national_insurance_?#|(twitter|instagram'
     '|social_media)_?handle',
     '(patient|pat|visit|encounter|admission|stay|contact|household|family)_?(no|nr|num'
     '|numbers?)', [], [], 'remove, or replace by a code that is not derived from the person')
];
