"""Plans and checks as plain SQL for other engines: what `duckanon.render` and `duckanon.render_check` write.

The package is not called ``render``: a package of that name would take the place of the function.
"""

try:
    import sqlglot  # noqa: F401 - here, so that whoever lacks it is told so in one sentence
except ImportError as missing:
    raise ImportError("duckanon.render needs sqlglot; pip install 'duckanon[render]' brings it.") from missing
