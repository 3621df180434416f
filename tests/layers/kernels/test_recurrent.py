"""The recurrent kernels against the CPU form of the same ops in float64, which is their specification.

Run as a program, this file checks some sizes with the interpreter.
"""

from __future__ import annotations

import pytest
import torch

from support.triton_kernels import CLOSE, apart, interpret, needs_interpreter
from tiebreak.layers.recurrent_scan import recur, recur_gradient
from tiebreak.layers.recurrent_steps import GRU, KINDS, LSTM

SIZES = {  # time, rows, units
    "tiny": (1, 1, 1),
    "uneven": (4, 19, 5),
    "units that fill no tile": (3, 3, 37),
    "the translator": (20, 64, 64),
    "its decoder": (20, 64, 128),
    "more units than a program holds": (3, 19, 130),
    "a language model": (35, 64, 512),
}
ROUNDING = {"tf32x3": CLOSE, "tf32": 5e-3, "bf16": 4e-2}  # norm-wise


def check_recurrent(name: str, kind: int, reverse: bool, precision: str, device: str) -> None:
    from tiebreak.layers.kernels import recurrent

    time, rows, units = SIZES[name]
    generator = torch.Generator().manual_seed(kind)
    count = 4 if kind == LSTM else 3 if kind == GRU else 1

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(3, *shape, generator=generator)

    lengths = torch.randint(1, time + 1, (3, rows), generator=generator)
    memory, bias = draw(rows, units) if kind == LSTM else draw(0), draw(count * units)
    weight = draw(count * units, units) * units**-0.5
    tensors = [draw(time, rows, count * units), weight, bias, draw(rows, units), memory, lengths]
    wanted = recur([each.double() if each.is_floating_point() else each for each in tensors], kind, reverse, precision)
    moved = [each.to(device) for each in tensors]
    found = recurrent.forward(moved, kind, reverse, precision)
    limit = ROUNDING[precision] if device == "cuda" or precision == "bf16" else CLOSE  # interpreted TF32 is float32
    for one, other in zip(found, wanted, strict=True):
        assert not other.numel() or apart(one, other) < limit
    dstates, dlast = draw(time + 1, rows, units), draw(rows, units) if kind == LSTM else draw(0)
    back = [weight.double(), lengths, *wanted, dstates.double(), dlast.double()]
    gradients = recur_gradient(back, kind, reverse, precision)
    given = [*(each.float().to(device) if each.is_floating_point() else each.to(device) for each in back)]
    own = recurrent.backward(given, kind, reverse, precision)
    for one, other in zip(own, gradients, strict=True):
        assert not other.numel() or apart(one, other) < limit
    # A run's numbers do not depend on its company.
    alone = recurrent.forward([each[2:] for each in moved], kind, reverse, precision)
    assert torch.equal(alone[0][0], found[0][2])
    assert torch.equal(recurrent.backward([each[2:] for each in given], kind, reverse, precision)[1][0], own[1][2])


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
@pytest.mark.parametrize("name", SIZES)
def test_recurrent_layers_on_a_gpu(name: str, kind: int, precision: str) -> None:
    for reverse in (False, True):
        check_recurrent(name, kind, reverse, precision, "cuda")


@pytest.mark.kernels
@needs_interpreter
def test_recurrent_layers_in_the_interpreter() -> None:
    interpret(__file__)


if __name__ == "__main__":
    for number in range(len(KINDS)):
        for each in ("tiny", "uneven", "more units than a program holds"):  # the interpreter is slow
            check_recurrent(each, number, number % 2 == 0, "tf32x3", "cpu")
    for number in (LSTM, GRU):
        check_recurrent("uneven", number, number == GRU, "bf16", "cpu")
        check_recurrent("uneven", number, number == LSTM, "tf32", "cpu")
