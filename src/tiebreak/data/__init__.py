"""Data: bytes to checked, split arrays. Knows no model and no torch."""
