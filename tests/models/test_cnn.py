from __future__ import annotations

import pytest

from tiebreak import catalog
from tiebreak.cost import measure
from tiebreak.errors import TiebreakError
from tiebreak.models.cnn import CnnPool, CnnStrided
from tiebreak.models.design import Images

OCT = Images(channels=1, height=28, width=28, classes=4)


@pytest.mark.parametrize(
    ("name", "features", "parameters"),
    [("cnn-pool", 576, 224_892), ("cnn-strided", 576, 224_892), ("cnn-pool-unpadded", 400, 168_572)],
)
def test_parameter_counts_of_the_reports(name: str, features: int, parameters: int) -> None:
    network = catalog.DESIGNS[name].network(OCT, {}, 0)
    assert measure.parameters(network) == parameters
    convolutions = 8 * (1 * 9 + 1) + 16 * (8 * 9 + 1)
    linears = 320 * (features + 1) + 120 * (320 + 1) + 4 * (120 + 1)
    assert convolutions + linears == parameters


def test_the_kuzushiji_net_has_420_906_parameters() -> None:
    ten = Images(channels=1, height=28, width=28, classes=10)
    assert measure.parameters(catalog.DESIGNS["cnn-kuzushiji"].network(ten, {}, 0)) == 420_906


def test_multiply_adds_by_hand() -> None:
    """14x14 and 6x6 outputs of 3x3 filters, then the three linear layers; a multiply-add is two operations."""
    linears = 576 * 320 + 320 * 120 + 120 * 4
    assert measure.forward_flops(CnnStrided(OCT), OCT) == 2 * (14 * 14 * 8 * 9 + 6 * 6 * 16 * 8 * 9 + linears)
    assert measure.forward_flops(CnnPool(OCT), OCT) == 2 * (28 * 28 * 8 * 9 + 12 * 12 * 16 * 8 * 9 + linears)


def test_an_image_too_small_for_the_filters_is_refused_with_its_size() -> None:
    with pytest.raises(TiebreakError, match="a side of 1 pixels is smaller than the 3"):
        CnnPool(Images(channels=1, height=2, width=28, classes=2))
