"""Runs of the user's own program or function: processes, what they leave behind, how they end. No torch."""
