"""Whether compiling a fused step is expected to pay: seconds of training with and without it. No torch.

Known before: how long a step takes as traced (timed), how many steps are to come, and how many operations the step has.
The compiler's seconds and its gain are known only afterwards. Both are assumptions, from an H200. Seconds, alone on 16
cores: 47 (residual network, 2,071 operations), 87 (transformer, 1,815), 89 (translator, 4,560), so 0.02 to 0.05 for an
operation. Beside fifteen others: 191 s for the same residual network, 105 s for the transformer, 53 s for a depthwise
network (673 operations), 146 s for the translator; a third of that, which is a guess, makes 0.011 to 0.031.
Gain: 1.3, 1.6 and 2.1 times as fast. What was compiled before is read from disk in a fraction of that time.
"""

from __future__ import annotations

from dataclasses import dataclass

PER_OPERATION = 0.025  # seconds, the middle of these
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
