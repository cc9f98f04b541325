"""Assess: which sets of columns pick people out of a table."""
