"""Releases of tables that are larger than memory: routed into parts, released part by part, counted when written.

What the modules call by the same names: `work` is where a release works, `layout` the columns that a call names; `k` is
the smallest number of people in a class, `person` the column that tells which person a row belongs to (None: every row
is another person); `rows` is how many rows the table has, `part_rows` how many of a part fit into memory.
"""

from duckanon.large.boxes_release import boxes, microaggregate
from duckanon.large.generalize_release import generalize
from duckanon.large.pica_release import pica
from duckanon.large.pipeline import Released
from duckanon.large.recode_release import recode
from duckanon.large.synthesize_release import synthesize

__all__ = ["Released", "boxes", "generalize", "microaggregate", "pica", "recode", "synthesize"]
