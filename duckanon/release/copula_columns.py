"""A table's columns as the codes that a normal copula works on, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duckanon.common.arrays import Floats
from duckanon.matrix.columns import NumberColumn
from duckanon.matrix.encoding import Encoding
from duckanon.release.copulas import category_codes


@dataclass(frozen=True)
class CopulaColumn:
    """One column.

    Attributes
    ----------
    codes
        A number for every row, in the order of the values; NaN for a number that is missing.
    categories
        The category that each code stands for, by its place in the encoding; None for numbers.
    """

    codes: Floats
    categories: NDArray[np.int64] | None

    @property
    def kind(self) -> str:
        """What the copula may do with it: interpolate numbers, choose among categories."""
        return "number" if self.categories is None else "category"

    def fill(self, values: Floats, out: Floats) -> None:
        """Write drawn codes as rows of the encoded matrix."""
        if self.categories is None:
            missing = np.isnan(values)
            out[0] = np.where(missing, 0.0, values)
            out[1:] = np.where(missing, 1.0, -1.0)
            return
        places = self.categories[values.astype(np.int64)]
        if len(out) == 1:
            out[0] = np.where(places == 1, 1.0, -1.0)
            return
        out[:] = -1.0
        out[places, np.arange(len(places))] = 1.0


def copula_columns(encoding: Encoding, matrix: Floats) -> list[CopulaColumn]:
    """Take the columns of an encoded table apart.

    Notes
    -----
    Categories have no order, and a rank correlation needs one: they are put into the order in which they differ most in
    the other columns (`copulas.category_codes`).
    """
    columns = []
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        own = matrix[:, group]
        if isinstance(column, NumberColumn):
            missing = own[:, 1] > 0 if column.nullable else np.zeros(len(own), bool)
            columns.append(CopulaColumn(np.where(missing, np.nan, own[:, 0]), None))
            continue
        places = (own[:, 0] > 0).astype(np.int64) if column.width == 1 else own.argmax(axis=1)
        codes = category_codes(places, np.delete(matrix, group, axis=1))
        categories = np.zeros(len(column.values), np.int64)
        categories[codes.astype(np.int64)] = places
        columns.append(CopulaColumn(codes, categories))
    return columns
