"""The hook of mkdocs that builds the site from the pages of the repository (``make docs``).

Every page keeps its path in the repository: a relative link then means the same file there and here, and mkdocs reports
the links and anchors that lead nowhere. A link to a file that is not a page leads to the repository.
"""

from __future__ import annotations

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
CALL = re.compile(r"^```(?=\nanon\.\w+\()", re.MULTILINE)
"""The call of a function in the reference: a block without a language, so that the tests do not run it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of ``docs/`` by all pages and pictures of the repository, under their paths there."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    found = sorted({path for pattern in (*PAGES, *ASSETS) for path in ROOT.glob(pattern)})
    return Files([*theme, *(_file(path.relative_to(ROOT).as_posix(), config) for path in found)])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site, and highlight the calls of functions."""
    parts = BLOCK.split(markdown)
    parts[::2] = [LINK.sub(lambda link: _target(link[0], page.file.src_uri, files), part) for part in parts[::2]]
    return CALL.sub("```sql", "".join(parts))


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
    return posixpath.relpath(uri, posixpath.dirname(source) or ".") + sign + anchor
