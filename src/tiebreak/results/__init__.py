"""The results of runs, and the store that holds them."""
