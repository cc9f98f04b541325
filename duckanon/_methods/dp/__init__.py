"""Differential privacy: tables of noisy counts, sums, means and quantiles, with OpenDP's noise."""
