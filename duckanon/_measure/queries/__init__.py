"""Counting queries on a release, with labels and intervals read as what they hold."""
