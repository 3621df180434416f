"""What a user's network must not do, checked before training: a run's numbers depend on its seed and on nothing else.

The checks build the network a few times and call it in both modes. They find random numbers that cannot be repeated,
memory that is no registered tensor (it would be in no checkpoint, and not per run), and tensors that evaluation
changes. Each is refused in one line that names the layer. A draw that happens later, under some condition, is noticed
in training: `loop` compares the global generators, and `fused` runs traced operations, which cannot draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.buffer_updates import rebound_buffers, take_buffer_updates
from tiebreak.layers.dropout import keyed, restart_calls
from tiebreak.layers.functional_dropout import FunctionKey, KeyedFunctions, key_functions
from tiebreak.layers.global_generators import seeded
from tiebreak.models.draw_checks import check_kept_draws, check_modes, without_draws
from tiebreak.models.unregistered import changed_attribute, same, unregistered

Inputs = tuple[Tensor, ...]
Make = Callable[[int], nn.Module]  # builds the network from a seed


def check_network(make: Make, inputs: Inputs) -> bool:
    """Refuse a network whose runs could not be repeated. Returns whether it draws by functions."""
    inputs = tuple(_random(each) if each.is_floating_point() else each for each in inputs)
    check_modes(make(0))
    _check_evaluation(make(0).eval(), inputs)
    _check_parameters(make(0))
    functional = _check_training(make(0).train(), inputs)
    if functional or keyed(make(0)):
        check_kept_draws(make, inputs)
    _check_building(make, inputs)
    if functional:
        _check_hidden_layer(make(0).eval(), inputs)
    return functional


def _random(like: Tensor) -> Tensor:
    return torch.rand(like.shape, generator=torch.Generator().manual_seed(1))


def _check_parameters(network: nn.Module) -> None:
    """Updates are for real numbers of 32 or 64 bits. Gradients are not accumulated: such a hook would not be called."""
    for name, parameter in _trained(network):
        if parameter.dtype not in (torch.float32, torch.float64):
            kind = str(parameter.dtype).removeprefix("torch.")
            raise TiebreakError(
                f"parameter {name!r} is of type {kind}, in which updates are rounded away or not defined; make it"
                " float32 (for products in bfloat16: `precision` in the study; for complex numbers: two real tensors)"
            )
        if parameter._post_accumulate_grad_hooks:
            raise TiebreakError(
                f"parameter {name!r} has a hook of register_post_accumulate_grad_hook, which training does not call;"
                " use register_hook"
            )


def _check_building(make: Make, inputs: Inputs) -> None:
    """Two networks of one seed are equal, and registered tensors are all that networks of two seeds differ in."""
    one, again, other = make(0), make(0), make(1)
    repeated = _tensors(again)
    for name, value in _tensors(one).items():
        if name not in repeated or not same(value, repeated[name]):
            raise TiebreakError(
                f"{name!r} differs when the network is built again from the same seed; draw initial values with torch,"
                " numpy.random or random, not with a generator of its own"
            )
    with torch.no_grad():
        for name, value in _tensors(one).items():
            if name not in _tensors(other) or _tensors(other)[name].shape != value.shape:
                raise TiebreakError(f"{name!r} has a shape that depends on the seed")
            value.copy_(_tensors(other)[name])
        outputs = []
        for network in (one.eval(), other.eval()):
            outputs.append(network(*inputs))
    if not same(*outputs):
        name = changed_attribute(unregistered(one), unregistered(other)) or "something"
        raise TiebreakError(
            f"{name!r} depends on the seed and is not registered, so that runs trained together would share it; use"
            " register_buffer"
        )


def _check_evaluation(network: nn.Module, inputs: Inputs) -> None:
    """Evaluation draws nothing, changes no tensor of the network, and gives the same output again."""
    with torch.no_grad(), seeded(0):
        without_draws(network, "evaluation", lambda: network(*inputs))
        before = {name: (id(value), value._version) for name, value in _tensors(network).items()}
        first = network(*inputs)
        after = {name: (id(value), value._version) for name, value in _tensors(network).items()}
        if changed := next((name for name in before if after.get(name) != before[name]), ""):
            raise TiebreakError(
                f"the forward pass changes {changed!r} in evaluation mode too, so that a result would depend on what"
                " was evaluated before; change it only `if self.training`"
            )
        attributes = unregistered(network)
        _refuse_difference(network, first, network(*inputs), attributes)
        take_buffer_updates(network)


def _check_training(network: nn.Module, inputs: Inputs) -> bool:
    """Training draws only with a key, and what it remembers are registered buffers."""
    mode = KeyedFunctions(FunctionKey())
    params = [each for _, each in _trained(network)]
    places = {name: (id(each), each.data_ptr()) for name, each in network.named_parameters()}

    def call() -> tuple[Tensor, ...]:
        restart_calls(network)
        mode.layer.calls = 0
        with _restored(network):
            before = dict(network.named_buffers())
            with mode:
                out: Tensor = network(*inputs)
            gradients = torch.autograd.grad(out.square().mean(), params, materialize_grads=True)
            rebound_buffers(network, before)
            take_buffer_updates(network)
        return out.detach(), *gradients

    try:
        first = without_draws(network, "training", call)
        now = {name: (id(each), each.data_ptr()) for name, each in network.named_parameters()}
        if moved := next((name for name in {**places, **now} if places.get(name) != now.get(name)), ""):
            raise TiebreakError(
                f"the forward pass replaces parameter {moved!r}, so that another one is trained than is used; change it"
                " in place under torch.no_grad(), or compute with another tensor"
            )
        earlier = unregistered(network)
        with seeded(1):
            second = call()
        attributes = unregistered(network)
        with seeded(2):
            third = call()
    except TiebreakError:
        raise
    except Exception:  # it may raise anything: training will raise it again, and say which run failed
        return mode.count > 0
    sparse = (
        name for (name, _), each in zip(_trained(network), first[1:], strict=True) if each.layout != torch.strided
    )
    if found := next(sparse, ""):
        raise TiebreakError(f"the gradient of {found!r} is sparse; use sparse=False, which computes the same")
    _refuse_difference(network, first[0], second[0], earlier)
    _refuse_difference(network, first[0], third[0], attributes)
    if not all(map(same, first, third)):
        raise TiebreakError(
            "its gradient changes from call to call with the same input, parameters and buffers; inside"
            " torch.utils.checkpoint use nn.Dropout, not F.dropout or others that draw"
        )
    if changing := changed_attribute(attributes, unregistered(network)):
        raise TiebreakError(
            f"{changing!r} changes from call to call and is not registered, so that a resumed run would not have it;"
            " use register_buffer"
        )
    return mode.count > 0


def _check_hidden_layer(network: nn.Module, inputs: Inputs) -> None:
    """The layer that holds the key of functions does not change what the network computes."""
    with torch.no_grad():
        before = network(*inputs)
        key_functions(network)
        try:
            kept = same(before, network(*inputs))
        except Exception:  # of a layer that it does not know
            kept = False
        if not kept:
            raise TiebreakError(
                "it calls F.dropout, or another function that draws, and iterates over its own layers, to which one is"
                " added for that; keep those that it calls in an nn.ModuleList"
            )


def _refuse_difference(network: nn.Module, first: Tensor, second: Tensor, before: dict[str, Any]) -> None:
    if not same(first, second):
        name = changed_attribute(before, unregistered(network))
        why = f"{name!r} is no registered buffer" if name else "it reads something else (a global variable, a clock)"
        raise TiebreakError(
            "its output changes from call to call with the same input, parameters and buffers:"
            f" {why}; use register_buffer for what it remembers"
        )


def _trained(network: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, each) for name, each in network.named_parameters() if each.requires_grad]


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


@contextmanager
def unchanged_tensors(network: nn.Module) -> Iterator[None]:
    """Refuse a first call that sets parameters or buffers from its input, which is zeros. New ones are fine."""
    made = {name: each for name, each in _tensors(network).items() if not nn.parameter.is_lazy(each)}
    before = {name: each.detach().clone() for name, each in made.items()}
    yield
    after = _tensors(network)
    if changed := next((name for name in before if name in after and not same(before[name], after[name])), ""):
        raise TiebreakError(
            f"its first forward pass sets {changed!r} in evaluation mode too, before it sees training data; change it"
            " only `if self.training`"
        )


@contextmanager
def _restored(network: nn.Module) -> Iterator[None]:
    """Parameters and buffers have the values of before afterwards, and are the tensors of before."""
    buffers = [(layer._buffers, name, value) for layer in network.modules() for name, value in layer._buffers.items()]
    values = [(value, value.detach().clone()) for value in _tensors(network).values()]
    yield
    for places, name, value in buffers:
        places[name] = value
    with torch.no_grad():
        for tensor, value in values:
            if not isinstance(tensor, nn.Parameter):
                tensor.detach_()
            tensor.data.copy_(value)
