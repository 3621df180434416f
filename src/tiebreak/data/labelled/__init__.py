"""Texts with a label each: the data of the `text-classifier` family."""
