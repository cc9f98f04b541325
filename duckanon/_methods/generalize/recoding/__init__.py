"""The search for the global recoding of several columns that loses least."""
