"""How many people of a population are unique, estimated from a sample of it."""
