"""Figures as SVG that stands inside a page: text stays text, colours follow the page, a title and a description."""

from __future__ import annotations

import hashlib
import html
import io
import re
import threading
import warnings
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from duckanon.plot.style import INK, ORIGINAL, REFERENCE, RELEASED

_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "duckanon", "path.simplify": True}
_SAVING = threading.Lock()  # how matplotlib writes SVG is a setting of the process, so one figure is written at a time

_PAGE_COLOURS = {
    INK: "currentColor",
    ORIGINAL: f"var(--plot-original, {ORIGINAL})",
    RELEASED: f"var(--plot-released, {RELEASED})",
    REFERENCE: f"var(--plot-reference, {REFERENCE})",
}


def svg(figure: Figure, title: str, description: str, background: str | None = None) -> str:
    """Write a figure as an SVG element, the same text each time.

    Args:
        figure: The figure.
        title, description: What somebody is told who does not see the picture.
        background: A colour for a file that stands alone. Without one the background is transparent and text, axes,
            originals, releases and references have the colours of the page: `currentColor` and the variables
            `--plot-original`, `--plot-released` and `--plot-reference`.

    Returns:
        Without XML declaration. It has no width, but a ratio: the page says how wide it is.
    """
    drawn = _draw(figure, background)
    drawn = re.sub(r"^.*?(?=<svg )|<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"(?<=font: )(\S+)px [^;\"]*", r"\1px sans-serif", drawn)
    drawn = re.sub(r"(?<=[ \"])font-family: [^;\"]*", "font-family: sans-serif", drawn)
    if background is None:
        for colour, of_page in _PAGE_COLOURS.items():
            drawn = drawn.replace(colour, of_page)
    mark = "p" + hashlib.sha256(f"{title}\n{description}\n{drawn}".encode(errors="replace")).hexdigest()[:10]
    drawn = _with_own_ids(drawn, mark)
    words = f'<title id="{mark}-title">{_text(title)}</title>\n<desc id="{mark}-desc">{_text(description)}</desc>'
    box = re.search(r'viewBox="[^"]*"', drawn)
    assert box
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img" '
        f'aria-labelledby="{mark}-title {mark}-desc">\n{words}'
    )
    return re.sub(r"<svg [^>]*>", lambda _: start, drawn, count=1).strip() + "\n"


def _text(words: str) -> str:
    return html.escape(words.encode(errors="replace").decode())


def _draw(figure: Figure, background: str | None) -> str:
    """Let matplotlib write the figure; its settings are the user's again afterwards."""
    written, colour = io.StringIO(), background or "none"
    with _SAVING:
        settings: Any = mpl.rcParams
        before = {name: settings[name] for name in _SETTINGS}
        try:
            settings.update(_SETTINGS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a letter that the font for measuring lacks is no matter
                figure.savefig(written, format="svg", facecolor=colour, edgecolor="none", metadata={"Date": None})
        finally:
            settings.update(before)
    return written.getvalue()


def _with_own_ids(drawn: str, mark: str) -> str:
    """Keep only the names that something refers to, and make them differ from those of other pictures of the page."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda found: f' id="{mark}-{found[1]}"' if found[1] in used else "", drawn)
    return re.sub(r'(url\(#|href="#)', lambda found: f"{found[1]}{mark}-", drawn)
