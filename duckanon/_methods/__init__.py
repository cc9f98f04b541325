"""The methods that turn a table into a release: generalized, recoded, swapped or synthesized."""
