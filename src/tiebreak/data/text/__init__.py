"""Text corpora for language models."""
