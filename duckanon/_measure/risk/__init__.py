"""How many people of a population stand alone, estimated from a sample of it."""
