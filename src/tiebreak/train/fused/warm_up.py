"""What the first job on a GPU would load one after the other, loaded while the command still makes its plan.

A worker needs torch's tracing and Triton, the GPU a context and its libraries: together longer than a small network
takes to train. Nothing here decides a number.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import torch
from torch.func import grad, vmap
from torch.nn import functional as F

from tiebreak.train.fused.trace import trace


def warm_up(device: str) -> None:
    """Load what training on the device will use; nothing on a CPU.

    What cannot be loaded is not reported here: the first job needs it too, and says which runs fail.
    """
    if device == "cpu" or not torch.cuda.is_available():
        return
    library = Thread(target=_use_libraries, args=(device,))  # waits for the GPU, not for Python
    library.start()
    trace_something()
    with suppress(Exception):
        _load_triton()
    library.join()


def trace_something() -> None:
    """Trace the gradient of a convolution over two runs: torch imports most of its tracing when it is first used."""

    def loss(weight: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(F.conv2d(image, weight), None, None, training=True).relu().square().mean()

    def step(state: torch.Tensor, image: torch.Tensor, rate: torch.Tensor) -> None:
        state.sub_(rate * vmap(grad(loss), in_dims=(0, None))(state, image))

    trace(step, torch.ones(2, 1, 1, 3, 3), torch.ones(2, 1, 4, 4), torch.ones(()))


def _use_libraries(device: str) -> None:
    """A step of a tiny network: makes the context of the GPU and loads cuDNN and cuBLAS."""
    with suppress(Exception):
        image, weight = torch.ones(2, 1, 8, 8, device=device), torch.ones(2, 1, 3, 3, device=device, requires_grad=True)
        hidden = F.conv2d(image, weight, padding=1).flatten(1)
        (hidden @ hidden.T).sum().backward()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def _load_triton() -> None:
    """Triton and our kernels. Triton builds its access to the driver when it is first asked for the GPU."""
    import triton

    from tiebreak.layers.kernels import compile_ahead, conv_products  # noqa: F401
    from tiebreak.train.fused import capture  # noqa: F401

    triton.runtime.driver.active.get_current_target()
