"""One idea a file: the formula, a plain form, the fast form, its cost."""
