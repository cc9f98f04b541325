"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon.common.declare import Release

FUNCTIONS = (Release(name="suppress_cells", algorithm="duckanon.suppress.functions:suppress_cells"),)
