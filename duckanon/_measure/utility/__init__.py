"""What a release keeps: statistics, distributions, models."""
