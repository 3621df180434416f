"""Whether compiling a fused step is expected to pay: seconds of training with and without it. No torch.

Known before: how long a step takes as traced (timed), how many steps are to come, and how many operations the step has.
The compiler's seconds and its gain are known only afterwards. Both are assumptions, from three networks on an H200:
47 s and 1.3 times as fast (residual network), 87 s and 1.6 times (transformer), 89 s and 2.1 times (translator); the
first two have about 1,900 operations. What was compiled before is read from disk in a fraction of that time.
"""

from __future__ import annotations

from dataclasses import dataclass

PER_OPERATION = 0.035  # seconds
GAIN = 1.3


@dataclass(frozen=True)
class Estimate:
    """Seconds of training as traced, of compiling, and of training once compiled."""

    traced: float
    compiling: float
    compiled: float

    @property
    def saved(self) -> float:
        """Seconds that compiling saves; negative where it costs more than it gains."""
        return self.traced - self.compiling - self.compiled


def estimate(step_seconds: float, steps: int, operations: int) -> Estimate:
    """For a cohort with so many steps to come, each of so many seconds (all of its runs together) and operations."""
    traced = step_seconds * steps
    return Estimate(traced=traced, compiling=PER_OPERATION * operations, compiled=traced / GAIN)
