"""What the tests of Triton kernels share: on a GPU they run there, elsewhere in Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

CLOSE = 2e-6  # norm-wise: three TF32 products have the precision of float32

needs_interpreter = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(),
    reason="triton comes with CUDA; where there is a GPU, its tests check the kernels",
)

in_interpreter = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="needs triton and TRITON_INTERPRET=1: make kernels-test",
)


def apart(found: Tensor, wanted: Tensor) -> float:
    """The norm of the difference, relative to the norm of what is expected."""
    assert found.shape == wanted.shape
    assert found.is_contiguous()
    return float(torch.linalg.vector_norm(found.double().cpu() - wanted) / torch.linalg.vector_norm(wanted))


def unfenced(kernel: Any) -> list[str]:
    """The options of its compiled forms whose wgmma reads copies in flight without a fence: Triton 3.6 forgets it."""
    forms = [form for caches in kernel.device_caches.values() for form in caches[0].values()]
    assert forms
    texts = ((str(form.metadata), form.asm["ptx"]) for form in forms)
    return [name for name, ptx in texts if "wgmma.mma" in ptx and "cp.async" in ptx and "fence.proxy.async" not in ptx]


def interpret(path: str) -> None:
    """Run a test file as a program in Triton's interpreter, which is chosen when triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)  # finds tests/support too
    done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
