"""Training: one run is the program; everything here is a function of a run, its state and the data."""
