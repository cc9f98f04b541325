"""A table's columns as the codes that a normal copula works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._methods.baselines.copulas import category_codes


@dataclass(frozen=True)
class CopulaColumn:
    """One column: codes in the order of the values, NaN for a missing number, and the category of each code.

    Categories are given by their index in the encoding; numbers have none.
    """

    codes: Floats
    categories: Ints | None


def copula_columns(encoding: Encoding, matrix: Floats) -> list[CopulaColumn]:
    """Split the columns of an encoded table.

    Categories have no order, and a rank correlation needs one: they are put into the order in which they differ most in
    the other columns (`copulas.category_codes`).
    """
    columns = []
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        features = matrix[:, group]
        if isinstance(column, NumberColumn):
            missing = features[:, 1] > 0 if column.nullable else np.zeros(len(features), bool)
            columns.append(CopulaColumn(np.where(missing, np.nan, features[:, 0]), None))
            continue
        indices = (features[:, 0] > 0).astype(np.int64) if column.width == 1 else features.argmax(axis=1)
        codes = category_codes(indices, np.delete(matrix, group, axis=1))
        categories = np.zeros(len(column.values), np.int64)
        categories[codes.astype(np.int64)] = indices
        columns.append(CopulaColumn(codes, categories))
    return columns
