"""From a study to a plan: every run with its identity, the equal terms, the predicted time."""
