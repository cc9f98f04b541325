"""New records of values that many people share."""
