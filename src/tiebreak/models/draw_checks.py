"""What a user's network draws must be repeatable, and what it keeps of it must be in a checkpoint.

A part of `user_network_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import keyed, restart_calls
from tiebreak.layers.functional_dropout import FunctionKey, KeyedFunctions
from tiebreak.layers.global_generators import drawn_from, generator_states, seeded
from tiebreak.models.unregistered import changed_attribute, same, unregistered
from tiebreak.models.users_lines import drawing_line

CHECK_SEED = 7_410_852_963  # one that nobody else sets: a network that seeds the generator is noticed
REPEATABLE = {  # what to do instead of a draw that no run could repeat
    "evaluation": "draw only `if self.training`",
    "training": "use nn.Dropout, or draw by torch.rand, randn, randint, randperm, bernoulli_, uniform_ or normal_",
    "the loss or the metrics": "draw in the network's forward pass, `if self.training`",
}


def without_draws(network: nn.Module, doing: str, call: Callable[[], Any]) -> Any:
    """The result of a call; refused if it draws from a global generator, by the innermost layer and the user's line."""
    started: list[dict[str, Any]] = []
    found: list[tuple[str, str]] = []  # layer, generator

    def enter(layer: nn.Module, args: Any) -> None:
        started.append(generator_states())

    def leave(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(layer: nn.Module, args: Any, output: Any) -> None:
            if (drawn := drawn_from(started.pop())) and not found:
                found.append((f"layer {name!r}, {type(layer).__name__}," if name else "it", drawn))

        return hook

    handles = []
    for name, layer in network.named_modules():
        handles.append(layer.register_forward_pre_hook(enter, prepend=True))
        handles.append(layer.register_forward_hook(leave(name), always_call=True))
    with seeded(CHECK_SEED):
        before = generator_states()
        try:
            result = call()
        finally:
            for handle in handles:
                handle.remove()
        if torch.initial_seed() != CHECK_SEED:
            raise TiebreakError(
                f"its forward pass seeds torch's generator (torch.manual_seed) in {doing}{drawing_line(call)}; leave"
                " that out: what it draws in training follows from the run's seed"
            )
        if drawn := drawn_from(before):
            layer, drawn = found[0] if found else ("it", drawn)
            raise TiebreakError(
                f"{layer} draws random numbers from the generator of {drawn} in {doing}{drawing_line(call)}, which"
                f" no run could repeat; {REPEATABLE[doing]}"
            )
    return result


def check_modes(network: nn.Module) -> None:
    """Refuse a network whose `train` or `eval` draws: they are called outside of steps."""
    with seeded(CHECK_SEED):
        before = generator_states()
        network.train().eval()
        if drawn := drawn_from(before):
            line = drawing_line(lambda: network.train().eval())
            raise TiebreakError(
                f"its train() or eval() draws random numbers from the generator of {drawn}{line}, which no run could"
                " repeat; draw in the forward pass"
            )


def check_kept_draws(make: Callable[[int], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    """Refuse a network that goes on with what it drew in an earlier step: a resumed run would draw it anew."""

    def step(network: nn.Module, key: int) -> Tensor:
        mode = KeyedFunctions(FunctionKey())
        for layer in (mode.layer, *keyed(network).values()):
            layer.key = torch.tensor(key, dtype=torch.int32)
        restart_calls(network)
        with torch.no_grad(), seeded(CHECK_SEED), mode:
            return network(*inputs)  # type: ignore[no-any-return]

    fresh, earlier = make(0).train(), make(0).train()
    buffers = {name: value.clone() for name, value in earlier.named_buffers()}
    params = [(each, each.detach().clone()) for each in earlier.parameters()]
    try:
        wanted = step(fresh, 1)
        step(earlier, 2)
        for each, start in params:
            each.data.copy_(start)
        for name, value in earlier.named_buffers():
            if name in buffers:
                value.copy_(buffers[name])
        found = step(earlier, 1)
    except Exception:  # it may raise anything: training will raise it again, and say which run failed
        return
    if not same(wanted, found):
        late = (name for name, _ in earlier.named_buffers() if name not in buffers)
        name = changed_attribute(unregistered(fresh), unregistered(earlier)) or next(late, "")
        raise TiebreakError(
            f"{repr(name) if name else 'something'} is set in one step and used in later ones, and is not registered"
            " from the start, so that a resumed run would not have it; use register_buffer in the constructor, or draw"
            " it in every step"
        )
