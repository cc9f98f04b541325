"""Draws README's outputs anew: `python -m tests.update_readme`, after looking at what changed and why."""

from __future__ import annotations

import re

import duckanon
from duckanon.cli import statements
from tests.test_readme import EXAMPLE, ROOT


def main() -> None:
    path = ROOT / "README.md"
    con = duckanon.connect()
    for statement in statements.split((ROOT / "examples" / "population.sql").read_text(encoding="utf-8")):
        statements.run(con, statement)

    def drawn(example: re.Match[str]) -> str:
        printed = "".join(statements.run(con, statement) for statement in statements.split(example[1]))
        return f"```sql\n{example[1]}```\n```text\n{printed}```"

    path.write_text(EXAMPLE.sub(drawn, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
