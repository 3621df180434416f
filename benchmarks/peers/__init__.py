"""The trainers that ours is measured against: all take the same `Problem` and can be checked against each other."""

import os

# Must be set before JAX is imported: both sides share the device, so JAX may not take all of its memory at once.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
