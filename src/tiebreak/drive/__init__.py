"""From a plan to records: jobs, worker processes, and the one writer of the store."""
