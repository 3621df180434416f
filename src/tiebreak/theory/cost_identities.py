"""The claims about costs: the formulas, the counts of the real layers, and how both grow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tiebreak.cost import measure
from tiebreak.layers import taylor
from tiebreak.layers.heads import MultiHead, multi_head_naive
from tiebreak.theory import growth, symbolic, workloads
from tiebreak.theory.claims import Outcome
from tiebreak.theory.fit import fit_exponent
from tiebreak.theory.parts import PARTS

HEADS = (1, 2, 4, 8)
BASE = {"L": 256, "D": 8, "V": 16}  # small, so that counting takes no time
ROUNDS = 7
Make = Callable[[int, int], MultiHead]


def cnn_fewer_parameters(small: str = "conv-net", large: str = "dense-net") -> Outcome:
    """M N + 3 ⌊(H-M+1)/2⌋ ⌊(W-N+1)/2⌋ against (H W + 3) ⌊…⌋ ⌊…⌋, as formulas, counted, and as they grow."""
    evidence: dict[str, float | str] = {}
    agree = fewer = True
    for H, W in ((12, 12), (28, 28), (21, 34), (48, 32)):
        counts = []
        for name in (small, large):
            sizes = {"H": H, "W": W, "M": 3, "N": 3}
            counts.append(measure.parameters(workloads.build(name, sizes).network))
            agree &= counts[-1] == PARTS[name].value("parameters", sizes)
        fewer &= counts[0] < counts[1]
        evidence[f"at {H}x{W}"] = f"{counts[0]:,} against {counts[1]:,}"
    orders = {name: [_order(PARTS[name].parameters, variable) for variable in "HW"] for name in (small, large)}
    sides = [2**n for n in range(8, 13)]
    for name in (small, large):
        values = [PARTS[name].value("parameters", {"H": side, "W": side}) for side in sides]
        evidence[f"{name}_exponent_in_HW"] = fit_exponent([side**2 for side in sides], values)[0]
    evidence["formulas_equal_counts"] = "yes" if agree else "no"
    holds = agree and fewer and orders == {small: [1, 1], large: [2, 2]}
    return Outcome(
        "cnn-fewer-parameters",
        "holds" if holds else "fails",
        f"at 28 x 28 pixels {evidence['at 28x28']}; the exponents in HW are "
        f"{evidence[f'{small}_exponent_in_HW']:.2f} and {evidence[f'{large}_exponent_in_HW']:.2f}",
        evidence,
    )


def softmax_quadratic(part: str = "attention") -> Outcome:
    """2 L² D multiply-adds."""
    return _growth("softmax-quadratic", part, {"L": 2, "D": 1})


def taylor_linear(part: str = "taylor") -> Outcome:
    """2 L M (V + 1) multiply-adds, M the number of features: linear in L, in the width of values, and in M."""
    return _growth("taylor-linear", part, {"L": 1, "V": 1, "M": 1})


def heads_equal(layer: Make | None = None, width: int = 64, length: int = 48) -> Outcome:
    """Parameters, multiply-adds and softmax weights for 1, 2, 4 and 8 heads. Time is shown and decides nothing."""
    make = layer or (lambda d, h: MultiHead(d, h, output_projection=False, bias="none"))
    evidence: dict[str, float | str] = {}
    costs, softmaxes = set(), []
    for h in HEADS:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            network, x = make(width, h), torch.randn(1, length, width)
            work = measure.count(lambda network=network, x=x: network(x)).multiply_adds  # type: ignore[misc]
            with _Softmaxes() as seen:
                multi_head_naive(network, x)
        costs.add((measure.parameters(network), work))
        softmaxes.append(seen.weights)
        evidence[f"h={h}"] = f"{measure.parameters(network):,} parameters, {work:,} multiply-adds, {seen.weights:,} softmax weights"  # noqa: E501  # fmt: skip
    formulas = {tuple(PARTS["multi-head"].value(quantity, {"L": length, "d": width, "h": h}) for quantity in
                      ("parameters", "multiply_adds")) for h in HEADS}  # fmt: skip
    kernel, plain = (_slower(make, HEADS[-1], form) for form in (MultiHead.__call__, multi_head_naive))
    evidence |= {"time_of_8_heads_over_1": kernel, "time_of_8_heads_over_1_by_the_formula": plain}
    evidence["left_open"] = (
        f"whether more heads are slower: on one core here, just now, 8 took {plain:.2f} times as long as one with the "
        f"weights written out, and {kernel:.2f} times by torch's kernel"
    )
    holds = costs == formulas and len(costs) == 1 and softmaxes == [h * length**2 for h in HEADS]
    equal = "the same parameters and multiply-adds" if len(costs) == 1 else "different parameters or multiply-adds"
    return Outcome(
        "heads-equal",
        "holds" if holds else "fails",
        f"{equal} for {', '.join(map(str, HEADS))} heads; softmax makes h n² weights, not n²",
        evidence,
    )


def _growth(claim: str, part: str, claimed: Mapping[str, int]) -> Outcome:
    """Exponents by formula and by counting, doubling one variable at a time; M, the features, is changed through D."""
    found: dict[str, tuple[float, float]] = {}
    evidence: dict[str, float | str] = {"multiply_adds": growth.line(PARTS[part].multiply_adds)}
    equal = True
    for variable in claimed:
        through = "D" if variable == "M" else variable
        if through not in PARTS[part].variables:
            continue
        xs, counts, values = list[float](), list[float](), list[float]()
        for size in (BASE[through] * 2**n for n in range(4)):
            sizes = PARTS[part].sizes(
                {name: base for name, base in BASE.items() if name in PARTS[part].variables} | {through: size}
            )
            counted = measure.count(workloads.build(part, sizes).call).multiply_adds
            values.append(PARTS[part].value("multiply_adds", sizes))
            equal &= counted == values[-1]
            counts.append(counted or 0)
            xs.append(
                taylor.features(torch.ones(size), sizes["K"]).numel() if variable == "M" and "K" in sizes
                else size + 1 if variable == "V" else size  # the normaliser is one more value
            )  # fmt: skip
        found[variable] = fit_exponent(xs, values)[0], fit_exponent(xs, counts)[0]
        evidence[f"formula_exponent_in_{variable}"], evidence[f"counted_exponent_in_{variable}"] = found[variable]
    evidence["formula_equals_count"] = "yes" if equal else "no"
    order = _order(PARTS[part].multiply_adds, "L")
    evidence["big_O_exponent_in_L"] = order
    as_claimed = found.keys() == claimed.keys() and all(
        abs(exponent - claimed[variable]) < 1e-6 for variable, both in found.items() for exponent in both
    )
    holds = equal and as_claimed and order == claimed["L"]
    shown = ", ".join(f"{counted:.2f} in {variable}" for variable, (_, counted) in found.items())
    return Outcome(
        claim,
        "holds" if holds else "fails",
        f"{evidence['multiply_adds']} multiply-adds{', as counted' if equal else ', but the count differs'}; "
        f"exponents {shown}",
        evidence,
    )


def _order(formula: symbolic.Expr, variable: str) -> float:
    """The exponent of the fastest growth."""
    return float(growth.big_o(formula, variable).as_base_exp()[1]) if formula.has(symbolic.symbol(variable)) else 0.0


class _Softmaxes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the outputs of softmax."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket is torch.ops.aten._softmax:
            self.weights += out.numel()
        return out


def _slower(make: Make, heads: int, form: Callable[..., object]) -> float:
    """Time of `heads` heads over that of one: medians, timed in turns, one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _time_in_turns(make, heads, form)
    finally:
        torch.set_num_threads(threads)


def _time_in_turns(make: Make, heads: int, form: Callable[..., object]) -> float:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        one, many, x = make(256, 1), make(256, heads), torch.randn(1, 512, 256)
        times: dict[MultiHead, list[float]] = {one: [], many: []}
        for _ in range(ROUNDS + 1):
            for network, taken in times.items():
                start = time.perf_counter()
                form(network, x)
                taken.append(time.perf_counter() - start)
    return statistics.median(times[many][1:]) / statistics.median(times[one][1:])
