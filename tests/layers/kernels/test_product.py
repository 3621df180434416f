"""The product kernel against torch's product in float64, and its descent step against the formula.

Run as a program, this file checks some shapes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.triton_kernels import CLOSE, apart, interpret, needs_interpreter, unfenced

PRODUCTS = {  # M, K, N
    "the CNN's hidden layer": (8, 576, 320),
    "its weight gradient": (320, 8, 576),
    "tiny": (1, 1, 1),
    "uneven": (17, 33, 65),
    "wide": (3, 100, 130),
    "large": (600, 500, 520),
}


def check_product(name: str, device: str) -> None:
    from tiebreak.layers.kernels import product

    rows, inner, columns = PRODUCTS[name]
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(3, *shape, generator=generator) for shape in ((rows, inner), (inner, columns)))
    start, rate = torch.randn(3, rows, columns, generator=generator), torch.tensor([0.1, 0.0, 3.0])
    wanted = a.double() @ b.double()
    left, right = a.to(device), b.to(device)
    found = product.product(left, right)
    assert apart(found, wanted) < CLOSE
    strided = left.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(product.product(strided, right), found)
    assert torch.equal(product.product(left[1:2], right[1:2])[0], found[1])
    param = start.to(device, copy=True)
    product.descend(param, left, right, rate.to(device))
    assert apart(param, start.double() - rate.double()[:, None, None] * wanted) < CLOSE
    assert torch.equal(param[1].cpu(), start[1])  # at a rate of 0
    alone = start[2:].to(device, copy=True)
    product.descend(alone, left[2:], right[2:], rate[2:].to(device))
    assert torch.equal(alone[0], param[2])


@pytest.mark.gpu
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_on_a_gpu(name: str) -> None:
    check_product(name, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_one_tf32_product_on_a_gpu(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiebreak.layers.kernels.product import _product, product

    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    generator = torch.Generator().manual_seed(0)
    for rows, inner, columns in ((640, 64, 192), (1024, 512, 256)):
        a, b = (torch.randn(3, *size, generator=generator).to(dtype) for size in ((rows, inner), (inner, columns)))
        found = product(a.to("cuda"), b.to("cuda"))
        assert apart(found, a.double() @ b.double()) < 4e-3
        assert torch.equal(product(a.to("cuda"), b.to("cuda")), found)
    assert not unfenced(_product)


@pytest.mark.kernels
@needs_interpreter
def test_products_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    for each in ("tiny", "uneven", "wide"):  # the interpreter is slow
        check_product(each, "cpu")
