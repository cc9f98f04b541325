"""Rules for the role of one column, from its values and its name; each returns a role and its reason, or None."""

from __future__ import annotations

from duckanon._measure.assess import keys, relations, shapes, vocabulary, weights
from duckanon._measure.assess.findings import PICKS_OUT, Columns, Role, Said, person_reason
from duckanon._measure.assess.keys import Groups
from duckanon._measure.assess.profiles import Profile

_FEW = 60  # different values of a column of few values, at most
_COARSE = 12  # values of an amount that is coarse enough for others to know it, at most
_INDIRECT = frozenset({"geographic_subdivision", "zip", "date", "age_over_89", "unique_code"})
"""Categories of anon.direct_identifiers that name nobody by themselves."""


def constant(profile: Profile, columns: Columns) -> Said:
    """Find columns of one value."""
    is_one = profile.distinct <= 1 and profile.missing in (0, 1) and profile.distinct_share * columns.row_count < 2
    return (Role.CONSTANT, "has the same value in every row") if is_one else None


def direct_identifier(profile: Profile, columns: Columns) -> Said:
    """Find what anon.direct_identifiers calls a name, a phone, an account and the like."""
    named = [category for category in profile.categories if category not in _INDIRECT]
    return (Role.IDENTIFIER, f"looks like {', '.join(named)}: remove it") if named and profile.distinct > 2 else None


def sentences(profile: Profile, columns: Columns) -> Said:
    """Find free text."""
    if profile.kind != "text" or not profile.known:
        return None
    words = profile.words
    is_various = profile.distinct > 0.3 * profile.known and profile.distinct > 30 and words.length_deviation > 6
    is_named = "text" in profile.topics and words.per_value > 2
    if (words.per_value >= 4 and is_various) or (words.per_value >= 6 and profile.distinct > 100) or is_named:
        return Role.IDENTIFIER, "free text: remove it, or have it reviewed"
    return None


def repeats_key(profile: Profile, columns: Columns) -> Said:
    """Find other writings of a key."""
    for key in columns.having(Role.PERSON, Role.HOUSEHOLD, Role.IDENTIFIER):
        if keys.repeats(profile, key, columns.groups.setdefault(key.name, Groups(key))):
            return Role.IDENTIFIER, f"follows from {key.name} and reveals it: remove it"
    person = columns.person
    is_fine = person is not None and profile.kind == "text" and profile.distinct >= 0.5 * person.distinct > 10
    if is_fine and columns.is_constant_for_person(profile):
        return Role.IDENTIFIER, "follows from the person key and nearly determines it: remove it"
    return None


def unique_code(profile: Profile, columns: Columns) -> Said:
    """Find codes that hardly repeat: texts without sentences, whole numbers that count or are evenly spread."""
    if profile.distinct_share < 0.9 or profile.known < 10:
        return None
    is_code = profile.kind == "text"
    numbers = profile.numeric if profile.is_integer and profile.distinct_share > 0.995 else None
    is_year = numbers is not None and 1900 <= numbers.lowest <= numbers.highest <= 2100
    if numbers is not None and not is_year and not shapes.is_age(profile):
        is_even = numbers.highest > profile.known and numbers.unevenness < 0.06
        is_code = not numbers.negative and (numbers.density > 0.5 or numbers.ascending > 0.97)
        is_code = is_code or "person key" in profile.topics
        is_code = is_code or (is_even and not profile.topics & vocabulary.CONFIDENTIAL)
    reason = f"{profile.distinct_share:.0%} of its values are distinct, built like a code: remove it"
    return (Role.IDENTIFIER, reason) if is_code else None


def first_names(profile: Profile, columns: Columns) -> Said:
    """Find names of people."""
    if profile.kind != "text" or profile.words.per_value >= 5:
        return None
    if vocabulary.tells_names(profile.plain_values):
        return Role.IDENTIFIER, "values are first names: remove it"
    is_many = profile.distinct > 100 and profile.distinct > 0.05 * profile.known and profile.words.with_digits < 0.05
    return (Role.IDENTIFIER, "many different words without digits, like names: remove it") if is_many else None


def named_identifier(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name for names, contacts and official numbers."""
    told = [topic for topic in ("name", "contact") if topic in profile.topics]
    is_many = profile.distinct > 20 if profile.kind == "text" else profile.distinct_share > 0.3
    is_wide = profile.kind == "numeric" and profile.numeric.median >= 1e5 and profile.distinct > 2
    if told and profile.kind in ("text", "numeric") and (is_many or ("contact" in told and is_wide)):
        return Role.IDENTIFIER, f"its name suggests a {told[0]}: remove it"
    return None


def key_by_name(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name for a key that the structure does not show, where it is about nothing else."""
    told = profile.topics & {"person key", "household key"}
    others = profile.topics & (vocabulary.KNOWN_BY_OTHERS | vocabulary.CONFIDENTIAL | {"weight"})
    if not told or others or not (profile.kind == "text" or profile.is_integer) or shapes.is_age(profile):
        return None
    if profile.distinct < 3 or (profile.distinct <= 20 and profile.distinct_share < 0.05):
        return None
    repeats = profile.known >= 1.1 * profile.distinct
    if "person key" in told and repeats and columns.person is None and profile.distinct_share < 0.95:
        columns.person = profile
        columns.groups.setdefault(profile.name, Groups(profile))
        return Role.PERSON, person_reason(profile)
    role = Role.HOUSEHOLD if "household key" in told and repeats else Role.IDENTIFIER
    return role, "named like the key of a person or a household: remove it"


def sampling_weight(profile: Profile, columns: Columns) -> Said:
    """Find sampling weights."""
    groups = [columns.groups[key.name] for key in columns.having(Role.HOUSEHOLD) if key.name in columns.groups]
    coarse = [one for one in columns.open if 2 <= one.distinct <= _FEW]
    has_heights = any(one.kind == "numeric" and shapes.is_height(one) for one in columns.profiles if one is not profile)
    return weights.role_of(profile, columns.row_count, groups, coarse, columns.having(Role.WEIGHT), has_heights)


def telling_weight(profile: Profile, columns: Columns) -> Said:
    """Find weights that nearly tell a quasi-identifier."""
    told = [
        one.name
        for one in columns.having(Role.QUASI, Role.POSSIBLE)
        if one.agreement < 0.9 and one.distinct <= _FEW and relations.tells(profile, one)
    ]
    reason = f"a weight that nearly reveals {', '.join(told)}: round it before a release"
    return (Role.UNDECIDED, reason) if told else None


def date_or_period(profile: Profile, columns: Columns) -> Said:
    """Find dates and periods."""
    if profile.kind not in ("date", "period"):
        return None
    if columns.is_constant_for_person(profile):
        return Role.QUASI, "a date that is constant for a person"
    return (Role.QUASI, "a date, which others may know") if profile.kind == "date" else (Role.POSSIBLE, "a period")


def known_words(profile: Profile, columns: Columns) -> Said:
    """Find values that are words for sex, marital status, education or countries, and codes of diseases."""
    if profile.has_icd_codes:
        return Role.SENSITIVE, "values are codes of diseases"
    if profile.kind == "text":
        for what, test in (
            ("sex", vocabulary.tells_sex),
            ("marital status", vocabulary.tells_marital_status),
            ("education", vocabulary.tells_education),
            ("countries, nationalities or states", vocabulary.tells_country),
        ):
            if test(profile.plain_values):
                return Role.QUASI, f"values are words for {what}"
    alike = [one for one in columns.profiles if one.kind == "numeric" and shapes.is_sex(one)]
    is_coded = profile in alike and len(alike) == 1 and not profile.topics & vocabulary.CONFIDENTIAL
    # A column that never repeats within a key is a term or a line number.
    if is_coded and not any(own.pairs > 20 and own.agreement(profile) < 0.02 for own in columns.groups.values()):
        return Role.QUASI, "codes 1 and 2 about equally often, like sex"
    return None


def age_or_body(profile: Profile, columns: Columns) -> Said:
    """Find ages, weights and heights by their spread."""
    if profile.topics & vocabulary.CONFIDENTIAL:
        return None
    if shapes.is_age(profile):
        return Role.QUASI, "distributed like ages"
    return (Role.QUASI, "distributed like body weights or heights") if shapes.is_body(profile) else None


def code_of_person(profile: Profile, columns: Columns) -> Said:
    """Find codes of many values that a person keeps: places, employers, schools."""
    if columns.person is None or profile.topics & vocabulary.CONFIDENTIAL or shapes.is_amount(profile):
        return None
    is_code = profile.kind == "text" or profile.is_integer
    if not is_code or profile.distinct < 20 or not columns.is_constant_for_person(profile):
        return None
    if "household key" in profile.topics:
        return Role.HOUSEHOLD, "constant for a person, and named like a group: remove it"
    return Role.QUASI, "constant for a person, with many values"


def place_code(profile: Profile, columns: Columns) -> Said:
    """Find codes of digits that many share."""
    words = profile.words if profile.kind == "text" and profile.distinct > 20 else None
    is_digits = words is not None and words.top_shape > 0.95 and words.with_digits == 1 and words.with_letters == 0
    is_shared = profile.distinct < 0.2 * profile.known
    reason = "digits of one length that many people share, like place codes"
    return (Role.QUASI, reason) if is_digits and is_shared else None


def named_topic(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name, where values do not contradict it."""
    known, confidential = (
        [topic for topic in profile.topics if topic in kind]
        for kind in (vocabulary.KNOWN_BY_OTHERS, vocabulary.CONFIDENTIAL)
    )
    if known and profile.distinct > 1:
        is_coarse = profile.distinct < max(2000, profile.known / 2) or "place" in known
        if confidential or is_coarse or not shapes.is_amount(profile):
            return Role.QUASI, f"its name suggests {' and '.join(sorted(known + confidential))}"
    if confidential and not known:
        if confidential == ["money"] and (profile.kind != "numeric" or profile.distinct <= _COARSE):
            return Role.POSSIBLE, "named like money, but with few values"
        if profile.distinct <= _FEW or profile.kind == "numeric":
            return Role.SENSITIVE, f"its name suggests {' and '.join(sorted(confidential))}"
    return None


def picks_out(profile: Profile, columns: Columns) -> Said:
    """Find columns in which many people are unique."""
    if profile.unique_fraction < PICKS_OUT or shapes.is_amount(profile) or profile.distinct <= 1:
        return None
    is_large = profile.is_integer and profile.numeric.highest > 1e4
    if is_large or weights.may_be(profile):
        return Role.UNDECIDED, "mostly distinct numbers: a code, a measurement or an amount"
    return Role.QUASI, "it singles people out by itself"


def other_number(profile: Profile, columns: Columns) -> Said:
    """Judge numbers of many values by their spread."""
    if profile.kind != "numeric" or profile.distinct <= 25:
        return None
    if shapes.is_money(profile):
        return Role.SENSITIVE, "amounts: a heavy tail with zeros or cents"
    if profile.distinct <= _FEW:
        return None
    if profile.is_integer and profile.distinct_share > 0.5 and profile.numeric.highest > 1e4:
        return Role.UNDECIDED, "mostly distinct whole numbers: a code or an amount"
    return Role.POSSIBLE, "whole numbers: amounts or codes" if profile.is_integer else "a measurement with many values"


def few_values(profile: Profile, columns: Columns) -> Said:
    """Say that a column of few values may be a quasi-identifier."""
    if profile.top_share > 0.995:
        return Role.UNDECIDED, "nearly the same value in every row"
    if profile.distinct <= _FEW or profile.distinct < 0.05 * profile.known:
        return Role.POSSIBLE, "few values"
    return Role.UNDECIDED, "no hint in its name or values"
