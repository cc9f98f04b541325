"""Boxes: intervals that at least k records share, shaped for chosen statistics."""
