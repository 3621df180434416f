"""The result of a study for people: a page, a Markdown file and the terminal. Never trains, never imports torch."""
