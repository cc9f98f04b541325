"""Draws outputs of examples, tables of options and lists of functions: `python -m tests.update_documentation`.

Look at what changed, and why, before you commit it. `python -m tests.update_documentation sql/assess/README.md` does
only the pages that are named; ``--quick`` does not run their examples. The outputs are drawn as DuckDB 2.0 draws them.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb

from tests import documentation


def draw(page: Path, files: Path, *, quick: bool) -> None:
    """Run the examples of a page and write what they print below them, and draw its tables and lists."""

    def with_output(example: re.Match[str]) -> str:
        printed = opened.run(example["language"], example["code"])
        block = f"```{example['language']}\n{example['code']}```\n"
        return f"{block}```text\n{printed}```\n" if printed else block

    with tempfile.TemporaryDirectory() as folder, closing(documentation.Clinic(files, Path(folder))) as opened:
        text = page.read_text(encoding="utf-8")
        if not quick:
            text = documentation.EXAMPLE.sub(with_output, text)
        if page.parent.parent == documentation.ROOT / "sql":
            text = documentation.with_options(text)
        if page == documentation.ROOT / "README.md":
            text = documentation.LIST.sub(lambda _: documentation.function_names(), text)
        if page == documentation.ROOT / "sql" / "README.md":
            text = documentation.LIST.sub(lambda _: documentation.function_list(opened.connection), text)
            text = documentation.ROADS.sub(lambda _: documentation.road_table(), text)
        for picture in Path(folder).glob("*.svg"):
            shutil.copy(picture, page.parent)
    page.write_text(text, encoding="utf-8")


def main() -> None:
    if duckdb.__version__ < "2":
        sys.exit("tests.update_documentation: the outputs are drawn by DuckDB 2.0; this is an older one.")
    with tempfile.TemporaryDirectory() as files:
        documentation.make_files(Path(files))
        names = [name for name in sys.argv[1:] if name != "--quick"]
        for page in [Path(name).resolve() for name in names] or documentation.PAGES_DRAWN:
            print(page.relative_to(documentation.ROOT))
            draw(page, Path(files), quick="--quick" in sys.argv)


if __name__ == "__main__":
    main()
