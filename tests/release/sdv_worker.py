"""Release tables by SDV's Gaussian copula, for `compared_methods`; run by the Python of an environment that has SDV 2.

Each line of standard input names a Parquet file, the file to write, and the columns of numbers that are categories.
"""

from __future__ import annotations

import json
import sys
import warnings

import pandas as pd
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer


def released(table: pd.DataFrame, codes: list[str]) -> pd.DataFrame:
    """Fit the copula with its defaults, and draw as many rows."""
    metadata = Metadata()
    metadata.add_table("people")
    for name, type_ in table.dtypes.items():
        kind = "numerical" if pd.api.types.is_numeric_dtype(type_) and name not in codes else "categorical"
        if pd.api.types.is_datetime64_any_dtype(type_):
            kind = "datetime"
        metadata.add_column(name, "people", sdtype=kind)
    model = GaussianCopulaSynthesizer(metadata)
    model.fit({"people": table})
    return model.sample(len(table))["people"]


def main() -> None:
    """Answer every line with the file that was written."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        source, target, codes = json.loads(line)
        table = pd.read_parquet(source)
        for name in table.columns:
            if table[name].dtype == object and len(known := table[name].dropna()) and hasattr(known.iloc[0], "year"):
                table[name] = pd.to_datetime(table[name])
        released(table, codes).to_parquet(target)
        print(target, flush=True)


if __name__ == "__main__":
    main()
