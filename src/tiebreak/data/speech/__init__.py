"""Speech data sets."""
