"""Releases of tables that are larger than memory: routed into parts, released part by part, counted when written."""

from duckanon.large.boxes_release import boxes
from duckanon.large.generalize_release import generalize
from duckanon.large.microaggregate_release import microaggregate
from duckanon.large.partition_releases import Released
from duckanon.large.pica_release import pica
from duckanon.large.recode_release import recode

__all__ = ["Released", "boxes", "generalize", "microaggregate", "pica", "recode"]
