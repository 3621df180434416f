"""Training on the machines of a Ray cluster. Ray is imported here only, and only when it is asked for."""
