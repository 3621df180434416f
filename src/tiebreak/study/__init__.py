"""A study: its model, its file and rules, the registry of names that it may use, and a user's design file."""
