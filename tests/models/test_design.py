from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.models.design import Design, Images, Sentences

SHAPE = Images(channels=1, height=4, width=4, classes=2)


def plain() -> type[nn.Module]:
    class Net(nn.Module):
        def __init__(self, shape: Images) -> None:
            super().__init__()
            self.out = nn.Linear(shape.height * shape.width, shape.classes)

        def forward(self, images: Tensor) -> Tensor:
            return self.out(images.flatten(1))  # type: ignore[no-any-return]

    return Net


def test_a_network_is_a_function_of_its_key() -> None:
    design = Design(name="x", family="classifier", build=plain())
    first, second, third = (design.network(SHAPE, {}, key).state_dict()["out.weight"] for key in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.mark.parametrize("inside", [False, True])
def test_an_argument_without_a_value_is_an_option_of_the_arm(inside: bool) -> None:
    class Wide(nn.Module):
        def __init__(self, shape: Images, width: int, *, depth: int) -> None:
            super().__init__()

    def build(shape: Images) -> nn.Module:
        return Wide(shape)  # type: ignore[call-arg]

    design = Design(name="x", family="classifier", build=build if inside else Wide, text_hash="a user's")
    with pytest.raises(TiebreakError, match="missing 1 required positional argument: 'width'") as told:
        design.network(SHAPE, {}, 0)
    assert str(told.value).endswith("build = { width = … }") != inside


def test_inputs_and_outputs_have_the_shape() -> None:
    images = Images(channels=3, height=5, width=7, classes=2)
    assert [each.shape for each in images.inputs(4)] == [(4, 3, 5, 7)]
    assert images.output(4) == (4, 2)
    sentences = Sentences(sources=9, targets=8, source_length=5, target_length=6)
    assert [each.shape for each in sentences.inputs(4)] == [(4, 5), (4, 6)]
    assert sentences.output(4) == (4, 6, 8)
