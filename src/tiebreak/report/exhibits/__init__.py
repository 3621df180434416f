"""What a report shows of trained runs beyond numbers."""
