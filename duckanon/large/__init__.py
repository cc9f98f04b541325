"""Releases of tables that are larger than memory: routed into parts, released part by part, counted when written."""

from duckanon.large.boxed import boxes
from duckanon.large.generalized import generalize
from duckanon.large.grouped import microaggregate
from duckanon.large.recoded import recode
from duckanon.large.routed import Released
from duckanon.large.swapped import pica

__all__ = ["Released", "boxes", "generalize", "microaggregate", "pica", "recode"]
