"""A study: its model, its file, its rules, the names that it may use and a user's own designs."""
