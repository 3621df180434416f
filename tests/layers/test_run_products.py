"""The product of every run as an op: which kernel each device gets, and what it computes elsewhere than on a GPU."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch._subclasses import FakeTensorMode

from tiebreak.layers import run_products
from tiebreak.layers.run_products import OP, descend, product

# Every op of ours that has kernels for a GPU, with the module that registers it.
OPS = {
    "product": "run_products",
    "product_conv": "product_conv",
    "product_conv_input": "product_conv",
    "product_conv_weight": "product_conv",
    "conv": "stacked_conv",
    "conv_input_gradient": "stacked_conv",
    "conv_weight_gradient": "stacked_conv",
    "layer_norm": "mapped_norm",
    "layer_norm_gradient": "mapped_norm",
    "recur": "recurrent_scan",
    "recur_gradient": "recurrent_scan",
}


@pytest.mark.parametrize("name", OPS)
def test_a_gpu_has_a_kernel_of_its_own_and_others_the_plain_form(name: str) -> None:
    __import__(f"tiebreak.layers.{OPS[name]}")
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    assert registered(f"tiebreak::{name}", "CUDA")
    assert registered(f"tiebreak::{name}", "CompositeExplicitAutograd") or registered(f"tiebreak::{name}", "CPU")


def test_elsewhere_it_is_the_product_of_every_run() -> None:
    a, b = torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(3, 5, 2, dtype=torch.float64)
    torch.testing.assert_close(OP(a, b), a @ b)
    torch.testing.assert_close(product(a, b), a @ b)
    param, rate = torch.randn(3, 4, 2, dtype=torch.float64), torch.tensor([0.1, 0.0, 2.0], dtype=torch.float64)
    wanted = param - rate.view(-1, 1, 1) * (a @ b)
    descend(param, a, b, rate)
    torch.testing.assert_close(param, wanted)


def test_a_trace_for_a_gpu_knows_shape_and_device() -> None:
    with FakeTensorMode():
        found = OP(torch.empty(3, 4, 5, device="cuda"), torch.empty(3, 5, 2, device="cuda"))
    assert (found.shape, found.device.type) == ((3, 4, 2), "cuda")


def test_what_is_registered_for_a_gpu_launches_our_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    kernels = ModuleType("tiebreak.layers.kernels.product")
    kernels.product = lambda a, b: called.append("product") or a @ b  # type: ignore[attr-defined, func-returns-value]
    kernels.descend = lambda *given: called.append("descend")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, kernels.__name__, kernels)
    monkeypatch.setattr("tiebreak.layers.kernels.product", kernels, raising=False)
    run_products.product._backend_fns["cuda"](torch.ones(2, 3, 4), torch.ones(2, 4, 1))
    with FakeTensorMode():
        param, rate = torch.empty(2, 3, 3, device="cuda"), torch.empty(2, device="cuda")
        descend(param, param, param, rate)
    assert called == ["product", "descend"]
