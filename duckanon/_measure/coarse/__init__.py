"""Coarse releases: labels, intervals and ancestors read as what they hold, so that they are judged like values."""
