"""The surveys that examples/surveys.py makes up, for the tests."""

from __future__ import annotations

from examples.surveys import AGE_GROUPS, age_groups, columns_of, income_survey, social_survey

__all__ = ["AGE_GROUPS", "age_groups", "columns_of", "income_survey", "social_survey"]
