"""A macro: its text and what the catalog knows about it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from duckanon._bridge.qualified import qualified


@dataclass(frozen=True)
class MacroFile:
    """One macro, its comment, and what it needs: a file of ``sql/``, or written from a declaration."""

    name: str
    stage: str
    parameters: str
    needs_python: bool
    is_table: bool
    sql: str

    @property
    def is_public(self) -> bool:
        """Whether the macro is meant for users: helpers begin with an underscore."""
        return not self.name.startswith("_")

    @property
    def calls(self) -> set[str]:
        """The macros that this one calls and that must therefore exist before it."""
        code = re.sub(r"--[^\n]*", "", self.sql)
        return set(re.findall(r"\banon\.(\w+)\(", code)) - {self.name}

    @functools.cached_property
    def immune_sql(self) -> str:
        """The macro as it is created: a user's macros do not take the place of the functions that it calls."""
        return qualified(self.sql)
