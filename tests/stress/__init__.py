"""Faults at random moments, for `make stress`: interrupts, closes, failures, and kill -9."""
