"""How many runs fit into a GPU's memory, from the peaks of two probes. No torch."""

from __future__ import annotations

MEMORY_SHARE = 0.8  # of what is free

Probe = tuple[int, int]  # runs, and bytes at the peak


def runs_that_fit(probes: list[Probe], free: int, share: float = MEMORY_SHARE) -> int:
    """A line through the probes: bytes that all runs share (data, code, workspaces) and bytes of each run.

    With one probe, or where the larger one needed no more (the peak was elsewhere), all bytes count as those of runs.
    """
    runs, peak = max(probes)
    each, shared = peak / runs, 0.0
    if len(probes) > 1:
        fewer, lower = min(probes)
        slope = (peak - lower) / (runs - fewer) if runs > fewer else 0.0
        if slope > 0:
            each, shared = slope, max(0.0, peak - slope * runs)
    return max(2, int((share * free - shared) / max(1.0, each)))
