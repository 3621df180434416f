from __future__ import annotations

import copy
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers.batchnorm import BatchNorm, batchnorms, swap_batchnorm, weigh_rows
from tiebreak.layers.buffer_updates import take_buffer_updates

KINDS: list[tuple[type[nn.Module], tuple[int, ...]]] = [
    (nn.BatchNorm1d, ()),
    (nn.BatchNorm1d, (5,)),
    (nn.BatchNorm2d, (3, 2)),
    (nn.BatchNorm3d, (2, 1, 3)),
]


def pair(kind: type[nn.Module], **options: object) -> tuple[nn.Module, nn.Module]:
    """Networks of one layer, ours and torch's, with the same random parameters, in float64."""
    torch.manual_seed(0)
    theirs = nn.Sequential(kind(4, **options)).double()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    ours = copy.deepcopy(theirs)
    swap_batchnorm(ours)
    assert isinstance(ours[0], BatchNorm)
    return ours, theirs


def settle(network: nn.Module) -> None:
    """What a trainer does with the new statistics."""
    buffers = dict(network.named_buffers())
    for name, value in take_buffer_updates(network).items():
        buffers[name].copy_(value)


def value_and_gradients(network: nn.Module, x: Tensor, rows: int) -> list[Tensor]:
    """The real outputs, and the gradients of a loss that looks at these alone, also that of the real inputs."""
    x = x.clone().requires_grad_()
    y = network(x)[:rows]
    loss = (y * torch.arange(1, y.numel() + 1).view_as(y).sin()).sum()
    gradient, *others = torch.autograd.grad(loss, [x, *network.parameters()])
    assert not gradient[rows:].any()
    return [y.detach(), gradient[:rows], *others]


def assert_same(one: list[Tensor], two: list[Tensor]) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        assert float((a - b).detach().abs().max()) < 1e-12


def assert_same_state(ours: nn.Module, theirs: nn.Module) -> None:
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert_same(list(ours.state_dict().values()), list(theirs.state_dict().values()))


@pytest.mark.parametrize(("kind", "space"), KINDS)
@pytest.mark.parametrize(("affine", "track"), list(itertools.product([True, False], repeat=2)))
@pytest.mark.parametrize("momentum", [0.1, None])
def test_training_and_evaluation_are_torchs(
    kind: type[nn.Module], space: tuple[int, ...], affine: bool, track: bool, momentum: float | None
) -> None:
    ours, theirs = pair(kind, affine=affine, track_running_stats=track, momentum=momentum, eps=1e-3)
    for _ in range(3):
        x = torch.randn(6, 4, *space, dtype=torch.float64) * 3 + 2
        assert_same(value_and_gradients(ours, x, 6), value_and_gradients(theirs, x, 6))
        settle(ours)
        assert_same_state(ours, theirs)
    ours.eval()
    theirs.eval()
    assert_same(value_and_gradients(ours, x, 6), value_and_gradients(theirs, x, 6))
    assert not take_buffer_updates(ours)


@pytest.mark.parametrize(("affine", "track"), list(itertools.product([True, False], repeat=2)))
@pytest.mark.parametrize("momentum", [0.1, None])
def test_torchs_kernel_changes_the_buffers_in_place(affine: bool, track: bool, momentum: float | None) -> None:
    ours, theirs = pair(nn.BatchNorm2d, affine=affine, track_running_stats=track, momentum=momentum)
    weigh_rows(ours, None, native=True)
    for _ in range(3):
        x = torch.randn(6, 4, 3, 2, dtype=torch.float64)
        assert_same(value_and_gradients(ours, x, 6), value_and_gradients(theirs, x, 6))
        assert not take_buffer_updates(ours)
        assert_same_state(ours, theirs)
    weigh_rows(ours, torch.tensor([0.2] * 5 + [0.0]))  # padding: not torch's kernel
    assert_same(value_and_gradients(ours, x, 5), value_and_gradients(theirs, x[:5], 5))
    weigh_rows(ours, None)
    vmap(ours)(torch.randn(2, 6, 4, 3, 2, dtype=torch.float64))


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(KINDS), st.integers(2, 6), st.integers(0, 4), st.booleans())
def test_rows_of_weight_zero_do_not_count(
    kind: tuple[type[nn.Module], tuple[int, ...]], real: int, padding: int, track: bool
) -> None:
    ours, theirs = pair(kind[0], track_running_stats=track)
    x = torch.randn(real + padding, 4, *kind[1], dtype=torch.float64)
    x[real:] *= 100
    weights = torch.cat([torch.full((real,), 1 / real), torch.zeros(padding)])
    weigh_rows(ours, weights)
    assert_same(value_and_gradients(ours, x, real), value_and_gradients(theirs, x[:real], real))
    settle(ours)
    assert_same_state(ours, theirs)


def test_statistics_in_one_pass_are_those_in_two() -> None:
    ours, theirs = pair(nn.BatchNorm2d)
    ours.one_pass = True  # type: ignore[assignment]
    for scale in (1.0, 3.0):
        x = torch.randn(8, 4, 3, 3, dtype=torch.float64) * scale + 20
        weigh_rows(ours, torch.tensor([0.2] * 5 + [0.0] * 3))
        assert_same(value_and_gradients(ours, x, 5), value_and_gradients(theirs, x[:5], 5))
        settle(ours)
        assert_same_state(ours, theirs)


def test_a_batch_of_eight_with_five_real_rows_is_a_batch_of_five() -> None:
    ours, theirs = pair(nn.BatchNorm2d)
    x = torch.randn(8, 4, 3, 3, dtype=torch.float64)
    weigh_rows(ours, torch.tensor([0.2] * 5 + [0.0] * 3))
    assert_same(value_and_gradients(ours, x, 5), value_and_gradients(theirs, x[:5], 5))
    settle(ours)
    assert_same_state(ours, theirs)
    weigh_rows(ours, None)
    assert_same(value_and_gradients(ours, x, 8), value_and_gradients(theirs, x, 8))


def test_the_forward_changes_no_buffer_and_statistics_are_told_once() -> None:
    network = nn.Sequential(nn.Linear(3, 4), BatchNorm(nn.BatchNorm1d(4)))
    before = copy.deepcopy(network.state_dict())
    network(torch.randn(5, 3))
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    fresh = take_buffer_updates(network)
    assert set(fresh) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert int(fresh["1.num_batches_tracked"]) == 1
    assert not any(value.requires_grad for value in fresh.values())
    assert not take_buffer_updates(network)


def test_a_layer_that_is_called_twice_in_a_pass_moves_twice() -> None:
    ours, theirs = pair(nn.BatchNorm1d)
    for network in (ours, theirs):
        torch.manual_seed(0)
        network(torch.randn(5, 4, dtype=torch.float64))
        network(torch.randn(5, 4, dtype=torch.float64))
    settle(ours)
    assert_same_state(ours, theirs)


def test_statistics_that_nobody_collected_do_not_reach_another_run() -> None:
    layer = BatchNorm(nn.BatchNorm1d(4))
    layer(torch.randn(5, 4))
    other = {"running_mean": torch.zeros(4), "running_var": torch.ones(4), "num_batches_tracked": torch.tensor(7)}
    functional_call(layer, other, (torch.randn(5, 4),))
    assert int(take_buffer_updates(layer)["num_batches_tracked"]) == 8


def test_one_real_row_leaves_no_nan() -> None:
    layer = BatchNorm(nn.BatchNorm1d(4))
    weigh_rows(layer, torch.tensor([1.0, 0.0, 0.0]))
    assert layer(torch.randn(3, 4))[0].isfinite().all()
    assert all(value.isfinite().all() for value in take_buffer_updates(layer).values())


def test_what_cannot_be_normalised_is_refused() -> None:
    layer = BatchNorm(nn.BatchNorm1d(4))
    with pytest.raises(ValueError, match="more than one value"):
        layer(torch.randn(1, 4))
    weigh_rows(layer, torch.ones(3))
    with pytest.raises(ValueError, match="first axis"):
        layer(torch.randn(6, 4))


def test_runs_together_are_each_run_alone_vmapped_and_traced() -> None:
    networks = [
        nn.Sequential(nn.Conv2d(2, 4, 3), BatchNorm(nn.BatchNorm2d(4)), nn.Flatten(), nn.LazyLinear(3))
        for _ in range(3)
    ]
    for network in networks:
        network.double()(torch.zeros(2, 2, 5, 5, dtype=torch.float64))
        take_buffer_updates(network)
    params, buffers = stack_module_state(networks)
    x = torch.randn(3, 6, 2, 5, 5, dtype=torch.float64)
    weights = torch.tensor([[0.25] * 4 + [0.0] * 2]).repeat(3, 1)

    def loss(
        params: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, weights: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        told = buffers | {f"{name}.weights": weights for name in batchnorms(networks[0])}
        y = functional_call(networks[0], (params, told), (x,))
        return (y.square().sum(1) * weights).sum(), take_buffer_updates(networks[0])

    step = vmap(grad(loss, has_aux=True))
    traced = make_fx(step)(params, buffers, x, weights)
    for gradients, fresh in (step(params, buffers, x, weights), traced(params, buffers, x, weights)):
        for run, network in enumerate(networks):
            own: dict[str, Tensor] = dict(network.named_parameters())
            its = dict(network.named_buffers())
            value, statistics = loss(own, its, x[run], weights[run])
            alone = torch.autograd.grad(value, list(own.values()))
            assert_same([gradients[name][run] for name in own], list(alone))
            assert_same([fresh[name][run] for name in statistics], list(statistics.values()))
    assert not take_buffer_updates(networks[0])


def test_swapping_keeps_parameters_buffers_and_sharing() -> None:
    shared = nn.BatchNorm1d(3, momentum=None)
    network = nn.Sequential(nn.Linear(3, 3), shared, nn.Sequential(nn.BatchNorm2d(2, affine=False).eval()), shared)
    parameters, names = list(network.parameters()), list(network.state_dict())
    swap_batchnorm(network)
    assert [type(layer).__name__ for layer in network] == ["Linear", "BatchNorm", "Sequential", "BatchNorm"]
    assert network[1] is network[3]
    assert all(a is b for a, b in zip(parameters, network.parameters(), strict=True))
    assert list(network.state_dict()) == names
    assert list(batchnorms(network)) == ["1", "2.0"]
    assert [layer.training for layer in batchnorms(network).values()] == [True, False]


@pytest.mark.parametrize(
    "layer", [nn.SyncBatchNorm(3), nn.InstanceNorm1d(3, track_running_stats=True), nn.LazyBatchNorm1d()]
)
def test_relatives_that_change_their_buffers_are_refused(layer: nn.Module) -> None:
    with pytest.raises(TiebreakError, match=rf"^1\.0 is an nn\.{type(layer).__name__}, .*; use nn\.BatchNorm1d"):
        swap_batchnorm(nn.Sequential(nn.Linear(3, 3), nn.Sequential(layer)))


def test_normalisations_without_running_statistics_stay() -> None:
    network = nn.Sequential(nn.InstanceNorm1d(3), nn.LayerNorm(3), nn.GroupNorm(1, 3))
    layers = list(network)
    swap_batchnorm(network)
    assert layers == list(network)
