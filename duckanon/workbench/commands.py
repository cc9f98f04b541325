"""The commands that do on a terminal what the pages do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from duckanon._bridge import sql
from duckanon.workbench.policy_text import PolicyText


def shell_word(text: str) -> str:
    r"""Quote a word for a shell, in double quotes where it has only single ones, which is easier to read.

    Examples:
        >>> shell_word("a 'b'")
        '"a \'b\'"'
    """
    is_plain = not set(text) & set('"$`\\!') and "'" in text
    return f'"{text}"' if is_plain else shlex.quote(text)


def command(page: str, policy: PolicyText, report: Path) -> str:
    """Return the command that does what a page does."""
    table, name = policy.table(), shell_word(policy.path.name)
    source = re.sub(r"(?<=://).*@", "", str(table.source.path or "..."))  # the name and password of a server
    quasi = sql.literal(table.named("quasi_identifier"))
    people = f"CREATE TABLE people AS FROM {sql.literal(source)};"
    counted = f"FROM anon.k_anonymity('people', {quasi})"
    called = f"FROM anon.{table.method.name}('people', {quasi}, {table.promises.k})"
    return {
        "columns": f"duckanon policy init --from {shell_word(source)} --to {name}",
        "risk": f"duckanon -c {shell_word(f'{people} {counted}')}",
        "method": f"duckanon policy check {name}",
        "preview": f"duckanon -c {shell_word(f'{people} {called} LIMIT 10')}",
        "release": f"duckanon release {name} --report {shell_word(report.name)}",
    }[page]
