"""The output of the commands in a terminal."""
