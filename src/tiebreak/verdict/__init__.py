"""From records to the verdict: statistics, intervals, sentences."""
