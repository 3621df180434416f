"""Under vmap, attention and normalisation as users write them have no operation for each run, and torch warns of none.

That they compute the same: `zoo_attention` and `zoo_layers` in the contract tests.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from support import zoo_attention, zoo_functions, zoo_layers, zoo_memory, zoo_recurrent
from support.zoo import SHAPE, ZOO
from tiebreak.layers.mapped_forms import mapped_forms
from tiebreak.layers.rnn import use_plain_cells

NETWORKS = (zoo_attention, zoo_functions, zoo_layers, zoo_memory, zoo_recurrent)  # importing them fills the zoo
FOLDED = (
    *("MultiHeadWithoutDropout", "MultiHead", "MultiHeadMasks", "EncoderDecoder", "VisionTransformer", "EncoderLayer"),
    *("DotProductAttention", "GroupedQueries", "Norms", "GruBothWays", "PackedLastState", "LstmCell"),
    *("OneHot", "SetsByMask", "InPlaceWithoutRules", "Bags", "TwoInputs", "Quantiles", "SlopeByJvp", "SpectralNorm"),
    *("WeightNorm", "OldWeightNorm"),
)


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations that are left below vmap."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count[str(func)] += 1
        return func(*args, **(kwargs or {}))


def operations(network: nn.Module, runs: int, *, training: bool) -> Counter[str]:
    """The operations of a gradient of so many runs, or of an evaluation. Warnings are errors."""
    network.train(training)
    params, buffers = stack_module_state([network] * runs)
    images = torch.rand(runs, 2, 1, 6, 6)

    def loss(params: dict[str, Tensor], buffers: dict[str, Tensor], images: Tensor) -> Tensor:
        with mapped_forms():
            return functional_call(network, (params, buffers), (images,)).square().mean()  # type: ignore[no-any-return]

    counting = Counting()
    with counting:
        (vmap(grad(loss)) if training else vmap(loss))(params, buffers, images)
    return counting.count


@pytest.mark.parametrize("name", FOLDED)
def test_the_number_of_operations_does_not_depend_on_the_number_of_runs(name: str) -> None:
    network = ZOO[name].design().network(SHAPE, {}, 0)
    use_plain_cells(network, True)
    for training in (True, False):
        operations(network, 2, training=training)  # fills caches
        assert operations(network, 2, training=training) == operations(network, 4, training=training)


def test_outside_the_block_torch_chooses_its_kernels() -> None:
    q = torch.randn(1, 1, 3, 4, requires_grad=True)
    with mapped_forms():
        inside = nn.functional.scaled_dot_product_attention(q, q, q)
    outside = nn.functional.scaled_dot_product_attention(q, q, q)
    assert torch.allclose(inside, outside, atol=1e-6)
    assert inside.grad_fn is not None
    assert outside.grad_fn is not None
    assert inside.grad_fn.name() != outside.grad_fn.name()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_attention_of_many_runs_under_autocast_has_its_gradient(device: str) -> None:
    # Torch's plain form widens bfloat16, and under vmap autocast rounds it again: the gradient met two types.
    q, k, v = torch.randn(3, 2, 4, 2, 5, 8, generator=torch.Generator().manual_seed(0)).to(device)

    def loss(q: Tensor, k: Tensor, v: Tensor, rounded: bool) -> Tensor:
        with mapped_forms(), torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False):
            found = nn.functional.scaled_dot_product_attention(q, k, v)
        return found.float().square().sum()

    gradient = grad(loss, argnums=(0, 1, 2))
    found, wanted = (vmap(gradient, in_dims=(0, 0, 0, None))(q, k, v, rounded) for rounded in (True, False))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.05 * other.norm()
    assert not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_transformer_layer_of_many_runs_under_autocast_has_its_gradient(device: str) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True).to(device)
    x = torch.randn(3, 4, 5, 8).to(device)

    def loss(params: dict[str, Tensor], x: Tensor, rounded: bool) -> Tensor:
        # Normalisation after bfloat16 sums: autocast on a GPU widens its input.
        with mapped_forms(), torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False):
            return functional_call(layer, params, (x,)).float().square().sum()  # type: ignore[no-any-return]

    params = {name: values.detach() for name, values in layer.named_parameters()}
    found, wanted = (vmap(grad(loss), in_dims=(None, 0, None))(params, x, rounded) for rounded in (True, False))
    for name, one in found.items():
        assert (one - wanted[name]).norm() < 0.1 * wanted[name].norm() + 1e-2
