"""The HTML and Markdown report."""
