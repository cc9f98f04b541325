"""Releases of tables that are larger than memory: routed into parts, released part by part, counted when written."""

from duckanon.large.boxed import Released, boxes

__all__ = ["Released", "boxes"]
