"""What a design costs: formulas, and counts from the real module."""
