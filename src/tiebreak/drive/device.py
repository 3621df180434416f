"""Whether the chosen device is there. Torch is imported only when it is needed."""

from __future__ import annotations

from tiebreak.errors import TiebreakError


def device_problem(device: str) -> str:
    """Why nothing can be trained on the device here, in one line; empty if it can be."""
    if device == "cpu":
        return ""
    import torch

    if torch.cuda.is_available():
        return ""
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
    return f"--device cuda: torch {torch.__version__} ({built}) sees no GPU here; use --device cpu"


def require_device(device: str) -> None:
    """Refuse a device that is not there."""
    if problem := device_problem(device):
        raise TiebreakError(problem)
