"""The thesis's methods: components swapped between people, and groups of similar records halved."""
