from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from tiebreak.layers.dropout import Dropout, restart_calls
from tiebreak.layers.functional_dropout import HIDDEN, FunctionKey, KeyedFunctions, key_functions


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(50, 50)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.out(F.dropout(x, 0.3, self.training)), 0.5, self.training)


def keyed_net(key: int = 7) -> Net:
    network = Net()
    key_functions(network)
    network.get_buffer(f"{HIDDEN}.key").fill_(key)
    return network


def test_each_call_is_the_dropout_layer_with_the_key_of_its_place() -> None:
    network, x = keyed_net(), torch.rand(4, 50)
    first, second = Dropout(0.3), Dropout(0.5)
    first.key.fill_(7)
    second.key.fill_(7)
    second.calls = 1
    assert torch.equal(network(x), second(network.out(first(x))))
    assert torch.equal(network.eval()(x), network.out(x))


def test_the_global_generator_is_neither_used_nor_changed() -> None:
    network, x = keyed_net(), torch.rand(4, 50)
    before = torch.get_rng_state()
    found = network(x)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    restart_calls(network)
    assert torch.equal(network(x), found)


def test_it_is_the_same_under_vmap_and_in_a_copy() -> None:
    networks = [keyed_net(key) for key in (3, 4, 5)]
    params, buffers = stack_module_state(networks)
    x = torch.rand(3, 4, 50)
    template = copy.deepcopy(networks[0])

    def call(own: dict[str, Tensor], its: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(template, (own, its), (x,))  # type: ignore[no-any-return]

    fused = vmap(call)(params, buffers, x)
    torch.testing.assert_close(fused, torch.stack([net(row) for net, row in zip(networks, x, strict=True)]))


def test_the_mode_ends_with_the_pass_even_if_it_raises() -> None:
    class Raises(Net):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError("no")

    network = Raises()
    key_functions(network)
    before = torch._C._len_torch_function_stack()
    with pytest.raises(ValueError, match="no"):
        network(torch.rand(2, 50))
    assert torch._C._len_torch_function_stack() == before


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": "bool"}, {"attn_mask": "add"}]
)
def test_attention_with_dropout_has_the_mean_of_attention_without(options: dict[str, Any]) -> None:
    q, k, v = torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    if "attn_mask" in options:
        mask = torch.ones(5, 5).tril(1)
        options = {"attn_mask": mask.bool() if options["attn_mask"] == "bool" else mask.log()}
    wanted = F.scaled_dot_product_attention(q, k, v, **options)
    with KeyedFunctions(FunctionKey()) as mode:
        torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, **options), wanted)
        draws = [F.scaled_dot_product_attention(q, k, v, dropout_p=0.2, **options) for _ in range(2000)]
    assert mode.count == 2000
    assert not torch.equal(draws[0], draws[1])
    assert float((torch.stack(draws).mean(dim=0) - wanted).abs().max()) < 0.12


@pytest.mark.parametrize("weights", [True, False])
def test_multi_head_attention_drops_with_the_key(weights: bool) -> None:
    layer = nn.MultiheadAttention(4, 2, dropout=0.4, batch_first=True)
    x = torch.rand(2, 6, 4)
    found = []
    for _ in range(2):
        source = FunctionKey()
        with KeyedFunctions(source):
            found.append(layer(x, x, x, need_weights=weights)[0])
        torch.rand(1)
        assert source.calls == 1
    assert torch.equal(*found)
    assert not torch.allclose(found[0], layer.eval()(x, x, x)[0])
    assert F.dropout.__module__ == "torch.nn.functional"


def test_a_layer_of_the_users_is_kept_whatever_its_name() -> None:
    network = Net()
    network.functional_dropout = nn.Dropout(0.5)
    key_functions(network)
    assert type(network.functional_dropout) is nn.Dropout


def test_a_rate_outside_of_zero_to_one_is_refused_as_torch_does() -> None:
    with KeyedFunctions(FunctionKey()), pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(torch.ones(3), 1.5)


def test_a_rate_of_zero_needs_no_mask_and_leaves_the_keys_of_later_calls() -> None:
    mode, x = KeyedFunctions(FunctionKey()), torch.rand(4, 50)
    with mode:
        assert F.dropout(x, 0.0) is x
        found = F.dropout(x, 0.5)
    second = Dropout(0.5)
    second.calls = 1
    assert torch.equal(found, second(x))


def test_attention_refuses_what_torch_refuses() -> None:
    q, mask = torch.rand(2, 3, 4), torch.ones(3, 3, dtype=torch.bool)
    with KeyedFunctions(FunctionKey()), pytest.raises(RuntimeError, match="attn_mask should not be set"):
        F.scaled_dot_product_attention(q, q, q, mask, dropout_p=0.1, is_causal=True)


@pytest.mark.parametrize("added", [False, True])
def test_a_query_without_a_key_gets_zeros_and_no_gradient(added: bool) -> None:
    q = torch.rand(2, 3, 4, requires_grad=True)
    mask = torch.ones(3, 3, dtype=torch.bool).tril(-1)
    given = torch.zeros(3, 3).masked_fill(~mask, -torch.inf) if added else mask
    with KeyedFunctions(FunctionKey()):
        found = F.scaled_dot_product_attention(q, q.detach(), q.detach(), given, dropout_p=0.1)
    assert torch.equal(found[:, 0], torch.zeros(2, 4))
    (gradient,) = torch.autograd.grad(found.sum(), q)
    assert gradient.isfinite().all()
    assert torch.equal(gradient[:, 0], torch.zeros(2, 4))
