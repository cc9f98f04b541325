"""Releases of tables that are larger than memory: routed into parts, released part by part, counted when written."""
