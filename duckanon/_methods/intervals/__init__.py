"""Statistics of a table of intervals, with ranges that no table within the intervals leaves."""
