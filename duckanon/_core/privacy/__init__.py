"""Privacy tests of releases and measures: nearest rows, copies, and comparison with a fresh sample."""
