"""Benchmarks: every task against a floor or a peer, in one run, at several sizes. `make bench` prints the table."""
