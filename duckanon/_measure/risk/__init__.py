"""Numbers of people who are unique in a population, estimated from a sample of it."""
