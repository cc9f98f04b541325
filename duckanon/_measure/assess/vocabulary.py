"""Words by which columns about people are told: their names, and the values of some, in eight languages.

English, German, French, Spanish, Italian, Portuguese, Dutch and Polish. Names count less than what a column's values
and its place among the others say (`assess.roles`): they decide only where the values do not contradict them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LETTERS = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "đ": "d", "œ": "oe"})
"""Letters that Unicode does not take apart into a plain one and an accent."""

_NAMES = {
    # topic: (whole words, beginnings of words or of the whole name; those of six letters count inside of it as well)
    "weight": (
        "weight weights wgt wt pw hhwt perwt pwgt pwgtp wgtp fnlwgt poids ponderation peso pesos gewicht waga wagi",
        "weight wgt fnlwgt afnlwgt gewicht hochrech poidss ponder factorexp fatorexp coefpond",
    ),
    "contact": (
        "tel telefon telefono telefone phone mobile handy gsm mail email fax iban ip url ssn nir nif dni nie nino bsn "
        "pesel nip svnr ahv cpf cf codicefiscale rvnr sin passport account konto compte cuenta conto conta rekening "
        "address adresse adres direccion indirizzo endereco morada street strasse rue calle via rua straat ulica",
        "email telefo telepho phone mobil courriel correo iban adress direcc indirizz enderec numsecu socialsec "
        "sozialvers steuernr steuerid taxid passport passeport pasaporte passaport paszport licen kontonr",
    ),
    "name": (
        "name names nom noms prenom nombre nombres apellido apellidos nome nomi cognome sobrenome apelido naam naams "
        "voornaam achternaam imie nazwisko vorname nachname zuname familienname surname forename lastname firstname",
        "surname lastname firstname fullname forename vorname nachname familienname prenom apellid cognom sobrenom "
        "voornaam achternaam nazwisk",
    ),
    "household key": (
        "hid hhid hh hhnr hhold household haushalt haushaltsid menage foyer hogar famiglia agregado huishouden gezin "
        "gospodarstwo family familyid famid team",
        "household haushalt menage hogarid hogarn hhid hhnum hhnr famid familyid familienid gezinsn huishoud "
        "gospodarst",
    ),
    "person key": (
        "id pid uid uuid guid pnr persnr persid seqn nr patient pat subject subj subjid participant respondent person "
        "personid customer cust kunde client cliente klient klant employee user member pupil student mrn matricule "
        "matricula fall fallnr case caseid dossier",
        "patient patnr personalnr personnr persnr persid personid custome kundennr kundenid respondent mitarbeiter "
        "studentid userid memberid subjectid identif numpat paziente pacient pacjent klantnr participant fallnr",
    ),
    "sex": (
        "sex sexe sexo sesso gender genre genero geschlecht geschl geslacht plec female male woman man women men frau "
        "mann femme homme mujer hombre donna uomo mulher homem vrouw kobieta riagendr",
        "gender geschlecht geslacht sexof",
    ),
    "age": (
        "age ages agep alter edad eta idade leeftijd wiek agegroup ageband agecat altersgruppe",
        "ageyear agegr ageinyear altersgr altersk trancheage grupoedad gruppoeta faixaet leeftijd wiekw",
    ),
    "birth": (
        "dob yob born birth birthday birthdate birthyear geb gebdat gebjahr geboren naissance naiss nacimiento "
        "nascita nascimento geboorte geboren urodzenia urodz byear bdate",
        "birthd birthy birthm dateofb yearofb gebdat gebjahr geburt naiss nacim nascit nascim geboor urodz",
    ),
    "place": (
        "zip plz cp city town village state region county puma country land pays pais paese kraj province provincia "
        "provincie bundesland stadt ort wohnort gemeinde bezirk kreis canton kanton departement ville commune ciudad "
        "municipio comunidad citta comune regione cidade distrito concelho stad gemeente plaats miasto gmina powiat "
        "wojewodztwo residence residencia district nuts lat lon latitude longitude urban rural urbrur smsa msa metro "
        "location neighborhood postcode division north south east west nord sud sued est ovest norte sur",
        "region zipcode postcode postal codepost codpost codigopost postleit bundesland provinc municip county urban "
        "rural countr wojew wohnort geogra northcen northeast southea",
    ),
    "marital": (
        "mar marital married single divorced widowed marst mstat famstand familienstand civil civilstatus situation "
        "estadocivil statocivile burgerlijk stancywilny verheiratet ledig marie celibataire casado soltero sposato",
        "marital marstat familienst famstand situationfam situationmat etatciv estadociv statociv burgerlijk stancyw "
        "civilst marri divorc widow",
    ),
    "origin": (
        "race rac ethnic ethnicity ethnie etnia nationality nationalitaet nationalite nacionalidad nazionalita "
        "nacionalidade nationaliteit narodowosc citizenship citizen cit staat staatsang hisp hispanic hispan nativity "
        "ancestry foreign immigrant migrant black white asian language sprache langue idioma lingua taal jezyk "
        "obywatelstwo herkunft origine origen",
        "nationa staatsang staatsb ethni etni citizen ciudadan cittadin cidadan nacional nazional narodow obywat "
        "ancest hispan immigr migra birthpl nativ foreignb",
    ),
    "education": (
        "edu educ education educational school schooling schl degree bildung schulabschluss abschluss diploma diplome "
        "etudes estudios educacion studi istruzione titolo escolaridade instrucao opleiding onderwijs wyksztalcenie "
        "grade hsgrad college collgrad isced edlevel",
        "educ schulab bildung diplom estudio istruz escolarid opleid onderwijs wyksz yearsofsch collegeg",
    ),
    "work": (
        "occ occp occupation job jobs profession beruf metier oficio profesion ocupacion professione lavoro profissao "
        "beroep zawod praca dept department abteilung industry indp branche sector nace cow esr employer employed "
        "employment unemployed workclass isco military veteran rank hours wkhp wkwn retired student status tenure "
        "exper experience",
        "occup profess beruf industr nace employ unempl workcl abteil erwerb emplo empleo occupaz impieg beroep zawod "
        "hoursperw wrkhr jobtit",
    ),
    "family": (
        "relat relation relationship rel children child kids nkids kidslt famsize hhsize kinder anzkinder enfants "
        "hijos figli filhos kinderen dzieci siblings sibs persons head spouse parents tenure",
        "householdsi hhsize haushaltsg famsize familysi relation nchild numchild numkid kinder enfants hijos figli "
        "filhos dzieci kidsu kidslt kidsge verwandt parent",
    ),
    "body": (
        "height size groesse taille estatura altura altezza lengte wzrost weight gewicht poids peso waga bodyweight",
        "height bodyweig bodyheig korpergr koerpergr statur",
    ),
    "health": (
        "diagnosis diagnose diagnostic diagnostico diagnosi diagnoza icd dx disease illness sick sickness krank "
        "krankheit maladie enfermedad malattia doenca ziekte choroba hiv aids cancer tumor drug drugs medication bmi "
        "sbp dbp bp pulse glucose cholesterol alb alt ast alp bun chol hco ggt glu ldh phos tbil trig crea creatinine "
        "sod osmo glob hdl ldl hba hgb hba1c wbc rbc mcv rdw plt hemoglobin smoke smoker smoked smoking cigs "
        "cigarettes tabac tabaco fumo alcohol alc drink depression disability disabled handicap pregnant pregnancy "
        "treatment therapy symptom symptoms condition outcome surgery allergy blood overdose died death",
        "diagn disease illnes krankh malad enferm malatt doenc ziekt chorob smok rauch tabac fuma papieros cigar "
        "alcoh alkoh depress medicat medikam cancer disab behind handic invalid pregn schwang comorb psychiat cholest "
        "hemoglo glucos bloodpr therap sympto",
    ),
    "money": (
        "income incomes faminc salary salaries wage wages lwage pay payroll gross net bonus earnings earn money "
        "assets wealth debt debts loan loans mortgage savings expend expenditure consumption revenue tax taxes agi "
        "fica cost costs charges price rent lohn gehalt einkommen kosten miete revenu revenus salaire loyer ingreso "
        "ingresos sueldo salario renta gasto gastos reddito stipendio entrate spesa inkomen loon salaris renda "
        "rendimento dochod placa zarobki wynagrodzenie wagp pincp povpip capital credit balance pension pensions "
        "benefit benefits welfare poverty networth dividends amount",
        "income salar earning einkomm gehalt lohn revenu ingres sueldo reddit stipend inkom rendim ordenado dochod "
        "wynagrodz zarob asset debt saving expend consump profit kosten benefit pension payment capital wealth networ "
        "mortgag fedtax statetax taxinc emcontrb ptotval pothval intval pearnval wsalval ernval povert",
    ),
    "belief": (
        "religion religious faith church konfession glaube party politics political vote voted union unionmember "
        "criminal crime conviction arrest prison orientation religione religiao godsdienst wyznanie gpa arrests narr",
        "religi politic konfess croyan gewerksch sindica syndic criminal convict arrest prison sexualori vakbond",
    ),
    "text": (
        "note notes comment comments remark remarks text freetext befund bemerkung anmerkung commentaire remarque "
        "comentario observacion observaciones nota notas opmerking uwagi description anamnese report letter",
        "comment bemerk remarq comentar observac anmerk opmerk freitext freetext",
    ),
}

KNOWN_BY_OTHERS = _words("sex age birth place marital origin education work family body")
CONFIDENTIAL = _words("health money belief")
_SHORT = _words("id hh pw wt nr ip cp dx cf bp")  # words of two letters that say something nevertheless
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "missing", "unknown", ".", "-"})
"""Texts that stand for NULL."""


_SEXES = frozenset(
    frozenset(pair.split("/"))
    for pair in _words(
        "m/f m/w h/f h/m m/v k/m male/female males/females man/woman men/women boy/girl mann/frau mannlich/weiblich "
        "maennlich/weiblich homme/femme masculin/feminin garcon/fille hombre/mujer masculino/femenino varon/mujer "
        "uomo/donna maschio/femmina maschile/femminile homem/mulher masculino/feminino man/vrouw mannelijk/vrouwelijk "
        "mezczyzna/kobieta meski/zenski"
    )
)
_THIRD_SEX = _words("d x u o divers diverse other andere autre otro altro inter")
_MARITAL = _words(
    "marri singl divor widow separat never partn led verh gesch verw getrennt celib marie veuf pacs solter casad viud "
    "nubil coniug vedov sposat separad divorz divorc viuv gehuwd ongehuwd gescheid weduw zonat zameznat rozwied wdow "
    "kawaler panna"
)
_EDUCATION = _words(
    "bachelor master doctor phd school college university primary secondary elementary tertiary hs-grad "
    "hauptschul realschul abitur hochschul grundschul licence lycee bac+ universi primari secundari bachillerato "
    "laurea diploma liceo licenciatura ensino basisonderwijs vmbo mbo-opleid hbo-opleid podstawow srednie wyzsze "
    "zawodow gymnasi degree"
)
_COUNTRY_CODES = _words(
    "AD AE AF AL AM AO AR AT AU AZ BA BD BE BG BO BR BY CA CD CH CI CL CM CN CO CR CU CY CZ DE DK DO DZ EC EE EG "
    "ER ES ET FI FR GB GE GH GR GT HK HN HR HU ID IE IL IN IQ IR IS IT JM JO JP KE KH KR KW KZ LA LB LI LK LT LU "
    "LV LY MA MD ME MG MK ML MM MT MX MY NG NI NL NO NP NZ PA PE PH PK PL PR PS PT PY QA RO RS RU RW SA SD SE SG "
    "SI SK SL SN SO SV SY TG TH TN TR TW TZ UA UG UK US UY UZ VE VN XK YE ZA ZM ZW"
)
_STATE_CODES = _words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK "
    "OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC PR"
)
_COUNTRIES = _words(
    "usa united-states united_states america mexico germany german france french spain spanish italy italian "
    "poland polish turkey turkish canada india china cuba england uk philippines austria austrian eu portugal "
    "netherlands belgium romania ukraine syria morocco russia greece sweden switzerland japan vietnam brazil "
    "deutschland deutsch osterreich oesterreich frankreich spanien italien polen turkei tuerkei schweiz rumanien "
    "syrien allemagne francais espagne italie pologne maroc suisse belgique alemania francia espana espanola "
    "italia polonia marruecos rumania alemanha franca espanha brasil nederland duitsland frankrijk spanje belgie "
    "niemcy francja hiszpania wlochy polska ukraina"
)
_FIRST_NAMES = _words(
    "anna marie maria louis paul emma jules chloe hugo lea nina carlos lucia ana jorge eva iris karl jan lena "
    "otto ida max ella tom peter michael thomas john james robert mary linda david daniel sarah laura julia "
    "martin andreas stefan sabine petra monika jean pierre michel claude nathalie isabelle sophie camille jose "
    "juan antonio manuel carmen pilar giuseppe marco luca giulia francesca paolo joao pedro ines rita sofia piotr "
    "krzysztof katarzyna agnieszka tomasz pieter johan sanne daan lisa mia leon felix william elizabeth patricia "
    "jennifer charles joseph susan ahmed mohamed muhammad fatima ali wei hans klaus ursula francois miguel rosa "
    "giovanni mario elena tiago catarina henk kees marek ewa zofia george kevin emily oliver jack alice"
)


def plain(text: str) -> str:
    """Return a text in lower case without accents."""
    return unicodedata.normalize("NFKD", text.translate(_LETTERS)).encode("ascii", "ignore").decode().lower()


@cache
def topics(name: str) -> tuple[str, ...]:
    """Return what a column's name says that it is about."""
    parted = plain(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    words = [word for word in re.split(r"[^a-z]+", parted) if len(word) > 2 or word in _SHORT]
    joined = re.sub(r"[^a-z]", "", parted)
    return tuple(topic for topic, known in _NAMES.items() if _is_about(words, joined, *map(str.split, known)))


def _is_about(words: list[str], joined: str, whole: list[str], stems: list[str]) -> bool:
    return (
        any(word in whole for word in words)
        or (len(joined) > 2 and joined in whole)
        or any(text.startswith(stem) for stem in stems for text in (joined, *words))
        or any(len(stem) > 5 and stem in joined for stem in stems)
    )


def is_missing(text: str) -> bool:
    """Tell whether a text stands for NULL."""
    return len(text) < 20 and text.strip().lower() in _MISSING


def tells_sex(values: Collection[str]) -> bool:
    """Tell whether plain values are those of sex."""
    return frozenset(values) - _THIRD_SEX in _SEXES or frozenset(values) in _SEXES


def tells_marital_status(values: Collection[str]) -> bool:
    """Tell whether at least half of the plain values are words for marital status."""
    return 3 <= len(values) <= 12 and _share(values, _begins_marital) >= 0.5


def tells_education(values: Collection[str]) -> bool:
    """Tell whether at least half of the plain values are words for degrees and schools."""
    return 3 <= len(values) <= 40 and _share(values, lambda value: any(word in value for word in _EDUCATION)) >= 0.5


def tells_country(values: Collection[str]) -> bool:
    """Tell whether plain values are countries, nationalities or states."""
    if len(values) < 3:
        return False
    upper = [value.upper() for value in values]
    coded = max(_share(upper, _COUNTRY_CODES.__contains__), _share(upper, _STATE_CODES.__contains__))
    return coded > 0.8 or _share(values, _COUNTRIES.__contains__) > 0.3


def tells_names(values: Collection[str]) -> bool:
    """Tell whether plain values begin with first names."""
    firsts = [re.split(r"[\s,.]+", value)[0] for value in values]
    return len(values) >= 8 and _share(firsts, _FIRST_NAMES.__contains__) > 0.3


def _begins_marital(value: str) -> bool:
    return any(part.startswith(tuple(_MARITAL)) for part in re.split(r"[\s_,/-]+", value))


def _share(values: Collection[str], test: Callable[[str], bool]) -> float:
    return sum(map(bool, map(test, values))) / max(len(values), 1)
