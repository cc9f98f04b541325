"""The hook of mkdocs that builds the site from the pages of the repository (``make docs``).

Every page keeps its path in the repository: a relative link then means the same file there and here, and mkdocs reports
the links and anchors that lead nowhere. A link to a file that is not a page leads to the repository.
"""

from __future__ import annotations

import functools
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://github.com/duckanon/duckanon/blob/main/"
PAGES = ("*.md", "docs/**/*.md", "sql/**/*.md", "examples/**/*.md", "duckanon/*/README.md", "tests/bench/README.md")
ASSETS = ("docs/assets/*", "docs/**/*.svg", "examples/**/*.svg")
PICTURES = (".svg", ".png")

BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
ENTRY = re.compile(r"^## `(?P<name>anon\.\w+)\((?P<parameters>.*)\)`$", re.MULTILINE)
"""The heading of a function in the reference, which is its whole signature."""

LONGEST_SIGNATURE = 80
"""Characters of a signature on one line; a longer one has a line for each parameter."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of ``docs/`` by all pages and pictures of the repository, under their paths there."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    found = sorted({path for pattern in (*PAGES, *ASSETS) for path in ROOT.glob(pattern)})
    return Files([*theme, *(_file(path.relative_to(ROOT).as_posix(), config) for path in found)])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site, and move the signature of a function below its name."""
    parts = BLOCK.split(markdown)
    parts[::2] = [LINK.sub(lambda link: _target(link[0], page.file.src_uri, files), part) for part in parts[::2]]
    return ENTRY.sub(_entry, "".join(parts))


def _file(uri: str, config: MkDocsConfig) -> File:
    """Return a file of the repository. Addresses on the site leave out ``docs/``."""
    file = File(uri, str(ROOT), config.site_dir, config.use_directory_urls)
    file.dest_uri = "contents.html" if uri == "docs/README.md" else file.dest_uri.removeprefix("docs/")
    return file


def _target(link: str, source: str, files: Files) -> str:
    """Return the target of a link on the site. A dead link becomes a relative one, which mkdocs reports."""
    path, sign, anchor = link.partition("#")
    if path.startswith(REPOSITORY):
        uri = path.removeprefix(REPOSITORY)
    elif path.startswith(("https:", "mailto:")):
        return link
    else:
        uri = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
    if (ROOT / uri).exists() and not files.get_file_from_path(uri) and not uri.endswith(PICTURES):
        return REPOSITORY + uri
    anchor = _short_anchors(uri).get(anchor, anchor) if anchor else ""
    return posixpath.relpath(uri, posixpath.dirname(source) or ".") + sign + anchor


@functools.cache
def _short_anchors(uri: str) -> dict[str, str]:
    """Return the anchors of a page's functions on the site, which are their names, by those that GitHub has."""
    path = ROOT / uri
    entries = ENTRY.finditer(path.read_text(encoding="utf-8") if path.exists() else "")
    return {_anchor(entry["name"] + entry["parameters"]): _anchor(entry["name"]) for entry in entries}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _entry(heading: re.Match[str]) -> str:
    """Return the heading of a function with its name alone, and its signature below."""
    name, parameters = heading.group("name", "parameters")
    if len(name + parameters) > LONGEST_SIGNATURE:
        parameters = "\n    " + re.sub(r", (?=[a-z]\w*(?: :=|,|$))", ",\n    ", parameters) + "\n"
    return f"## `{name}`\n\n```sql\n{name}({parameters})\n```"
