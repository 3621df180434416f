"""Scores in from the files of other tools, and results out: tables and figures for a paper, runs for a tracker."""
