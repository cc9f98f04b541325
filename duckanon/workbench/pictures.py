"""Pictures of the workbench as SVG without styles of its own: the page's content policy allows none inside."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 460, 220, 52, 40


def bar(share: float) -> Markup:
    """Draw a bar that is so long, as a share of its cell."""
    width = min(max(100 * share, 0.5), 100)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{:.1f}" height="10"></rect></svg>'
    ).format(width)


def pair(before: float, after: float) -> Markup:
    """Draw two bars, one above the other: a share of the original, and of the release."""
    return Markup(
        '<svg class="bar pair" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="original" width="{:.1f}" height="9"></rect>'
        '<rect y="11" width="{:.1f}" height="9"></rect></svg>'
    ).format(min(100 * before, 100), min(100 * after, 100))


def curve(points: Sequence[tuple[int, float, int]], sizes: Sequence[int], chosen: int | None) -> Markup:
    """Draw the loss over k, with a line at the k that the policy promises."""
    top = max([value for _, value, _ in points] + [0.05]) * 1.1
    places = {k: _LEFT + index * (_WIDTH - _LEFT - 24) / (len(sizes) - 1) for index, k in enumerate(sizes)}

    def height(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - 16)

    parts = [_axes("people in a class, at least (k)", "loss")]
    parts += [_text(places[k], _HEIGHT - 22, str(k), "middle") for k in sizes]
    parts += [_text(_LEFT - 6, height(top * part) + 4, f"{100 * top * part:.0f} %", "end") for part in (0, 0.5, 1)]
    if chosen in places:
        x = places[chosen]
        parts.append(f'<line class="chosen" x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{_HEIGHT - _BOTTOM}"></line>')
    line = " ".join(f"{places[k]:.1f},{height(value):.1f}" for k, value, _ in points)
    parts.append(f'<polyline points="{line}"></polyline>')
    parts += [f'<circle cx="{places[k]:.1f}" cy="{height(value):.1f}" r="4"></circle>' for k, value, _ in points]
    label = "; ".join(f"k = {k}: {100 * value:.1f} %" for k, value, _ in points) or "no point yet"
    return _picture("Information loss over k", label, parts)


def risk_utility_map(points: Sequence[tuple[str, float, float]]) -> Markup:
    """Draw methods by their loss (across) and their risk (up)."""
    top = max([risk for _, risk, _ in points] + [0.01]) * 1.25
    parts = [_axes("told apart by a classifier (0 %: by chance)", "risk")]
    for part in (0, 0.5, 1):
        x, y = _LEFT + part * (_WIDTH - _LEFT - 60), _HEIGHT - _BOTTOM - part * (_HEIGHT - _BOTTOM - 20)
        parts += [_text(x, _HEIGHT - 22, f"{100 * part:.0f} %", "middle")]
        parts += [_text(_LEFT - 6, y + 4, f"{100 * top * part:.1f} %", "end")]
    written: list[float] = []
    for name, risk, loss in sorted(points, key=lambda one: -one[1]):
        x = _LEFT + loss * (_WIDTH - _LEFT - 60)
        y = _HEIGHT - _BOTTOM - risk / top * (_HEIGHT - _BOTTOM - 20)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"></circle>')
        anchor = "end" if loss > 0.6 else "start"
        below = 16 if any(abs(y - other) < 16 for other in written) else -6  # names of near points do not touch
        parts.append(_text(x + (-8 if anchor == "end" else 8), y + below, name, anchor))
        written.append(y)
    label = "; ".join(f"{name}: risk {100 * risk:.2g} %, told {100 * loss:.0f} %" for name, risk, loss in points)
    return _picture("Methods by risk and loss", label or "no method yet", parts)


def _axes(across: str, up: str) -> str:
    return (
        f'<path class="axis" d="M{_LEFT} 10 V{_HEIGHT - _BOTTOM} H{_WIDTH - 12}"></path>'
        + _text((_WIDTH + _LEFT) / 2, _HEIGHT - 4, across, "middle")
        + _text(_LEFT + 4, 12, up, "start")
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _picture(title: str, label: str, parts: Sequence[str]) -> Markup:
    start = Markup('<svg class="picture" viewBox="0 0 {} {}" role="img" aria-label="{}: {}">').format(
        _WIDTH, _HEIGHT, title, label
    )
    return start + Markup("".join(parts)) + Markup("</svg>")
