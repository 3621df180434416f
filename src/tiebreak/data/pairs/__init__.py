"""Sentence pairs for translation."""
