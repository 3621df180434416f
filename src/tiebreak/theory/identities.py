"""Claims that need no training: each check computes both sides of the claim on the real layers.

A check takes its subject as an argument, so that tests can pass a wrong matrix, formula, layer or normalisation and see
the check fail. Checks about costs are in `cost_identities`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.layers import graph, taylor
from tiebreak.theory import conv_matrix
from tiebreak.theory.claims import Outcome
from tiebreak.theory.cost_identities import cnn_fewer_parameters, heads_equal, softmax_quadratic, taylor_linear

EXACT = 1e-10  # in float64
PATH = ((0, 1), (1, 2))
CONVOLUTIONS = (  # channels, filters, image, filter size, stride, padding
    (1, 1, (6, 6), (3, 3), 1, 0),
    (1, 1, (7, 10), (2, 3), 1, 0),
    (2, 3, (9, 7), (3, 2), 2, 1),
    (3, 2, (8, 11), (5, 4), 3, 2),
)
Edges = Sequence[tuple[int, int]]
Size = Callable[[int, int], int]


def conv_is_linear(as_matrix: Callable[..., Tensor] = conv_matrix.as_matrix) -> Outcome:
    """vec(conv(x, w)) = M vec(x), and conv(2 x - 3 y) = 2 conv(x) - 3 conv(y)."""
    source = torch.Generator().manual_seed(0)
    apart = additive = largest = 0.0
    for channels, filters, image, kernel, stride, padding in CONVOLUTIONS:
        weight = torch.randn(filters, channels, *kernel, generator=source, dtype=torch.float64)
        x, y = torch.randn(2, 1, channels, *image, generator=source, dtype=torch.float64)
        of_x, of_y, of_both = (F.conv2d(z, weight, stride=stride, padding=padding) for z in (x, y, 2 * x - 3 * y))
        matrix = as_matrix(weight, image, stride, padding)
        fits = matrix.shape == (of_x.numel(), x.numel())
        error = (matrix @ x.reshape(-1, 1)).flatten() - of_x.flatten() if fits else torch.tensor(math.inf)
        apart = max(apart, float(error.abs().max()))
        largest = max(largest, float(of_x.abs().max()))
        additive = max(additive, float((of_both - (2 * of_x - 3 * of_y)).abs().max()))
    holds = max(apart, additive) < EXACT
    return Outcome(
        "conv-is-linear",
        "holds" if holds else "fails",
        f"over {len(CONVOLUTIONS)} sizes, strides and paddings the matrix and conv2d differ by at most {apart:.1g},"
        f" in numbers up to {largest:.0f}",
        {
            "convolutions": len(CONVOLUTIONS),
            "largest_difference": apart,
            "largest_number": largest,
            "largest_additivity_error": additive,
        },
    )


def multisets(D: int, K: int) -> int:
    """C(D + K - 1, K - 1), the number of features in report R1."""
    return math.comb(D + K - 1, K - 1)


def tuples(D: int, K: int) -> int:
    """1 + D + ... + D^(K-1), the number in report R0."""
    return sum(D**n for n in range(K))


def last_term(D: int, K: int) -> int:
    """D^(K-1), the number in report R2: that of the last term only."""
    return int(D ** (K - 1))


def feature_size(symmetric: Size = multisets, full: Size = tuples, rival: Size = last_term) -> Outcome:
    """The claimed sizes, and that of report R2, against features whose product is the exponential cut after K terms."""
    source = torch.Generator().manual_seed(0)
    wrong, rival_right, error, cases = 0, 0, 0.0, list(itertools.product(range(2, 7), (3, 5, 7)))
    for D, K in cases:
        q, k = torch.randn(2, D, generator=source, dtype=torch.float64)
        cut = sum(float(q @ k) ** n / math.factorial(n) for n in range(K))
        found = []
        for kind in (True, False):
            of_q, of_k = (taylor.features(x, K, symmetric=kind) for x in (q, k))
            error = max(error, abs(float(of_q @ of_k) - cut) / max(1.0, abs(cut)))
            found.append(of_q.numel())
        wrong += found != [symmetric(D, K), full(D, K)]
        rival_right += rival(D, K) in found
    ordered, unordered = (taylor.features(torch.ones(16), 3, symmetric=kind).numel() for kind in (False, True))
    holds = wrong == 0 and rival_right < len(cases) and error < EXACT
    return Outcome(
        "feature-size",
        "holds" if holds else "fails",
        f"at D = 16 and K = 3 there are {unordered} symmetric features and {ordered} ordered ones; D^(K-1) is "
        f"{rival(16, 3)}",
        {
            "sizes_compared": len(cases),
            "sizes_wrong": wrong,
            "rival_right": rival_right,
            "largest_relative_error_of_the_product": error,
        },
    )


def perplexity_is_exp_ce(cross_entropy: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy) -> Outcome:
    """exp of the mean cross-entropy against the inverse geometric mean of the target probabilities."""
    source = torch.Generator().manual_seed(0)
    logits = torch.randn(40, 10, generator=source, dtype=torch.float64)
    targets = torch.randint(10, (40,), generator=source)
    entropy = float(cross_entropy(logits, targets))
    chances = [float(row.exp()[target] / row.exp().sum()) for row, target in zip(logits, targets, strict=True)]
    perplexity = math.prod(chances) ** (-1 / len(chances))
    even = math.exp(float(cross_entropy(torch.zeros(4, 10, dtype=torch.float64), torch.arange(4))))
    apart = max(abs(math.exp(entropy) / perplexity - 1), abs(math.log(perplexity) - entropy), abs(even / 10 - 1))
    return Outcome(
        "perplexity-is-exp-ce",
        "holds" if apart < EXACT else "fails",
        f"exp({entropy:.4f}) = {math.exp(entropy):.4f}, and the probabilities give {perplexity:.4f}",
        {"cross_entropy": entropy, "perplexity": perplexity, "of_10_equal_chances": even, "largest_difference": apart},
    )


def cosine(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Σ min / √(|a| |b|) over the tokens as multisets.

    >>> cosine("listen", "silent")
    1.0
    """
    return sum((Counter(a) & Counter(b)).values()) / math.sqrt(len(a) * len(b))


def cosine_semantic(similarity: Callable[[str, str], float] = cosine) -> Outcome:
    """Sentences that mean the opposite in the same letters, and the same in other letters."""
    one, opposite = "the dog bites the man", "the man bites the dog"
    said, again = "he is rich", "what a wealthy fellow"
    turned, meant = similarity(one, opposite), similarity(said, again)
    backwards = similarity(one, one[::-1])
    fails = min(turned, backwards) > 1 - EXACT and meant < turned
    return Outcome(
        "cosine-semantic",
        "fails" if fails else "undecided",  # telling some sentences apart does not prove that meaning is captured
        f"“{one}” and “{opposite}” have similarity {turned:.2f}, “{said}” and “{again}” {meant:.2f}: letters are "
        "counted, order and meaning are ignored",
        {"same_letters_other_meaning": turned, "backwards": backwards, "other_letters_same_meaning": meant},
    )


def gcn_rows_normalised(kind: str = "symmetric") -> Outcome:
    """Row sums on a path of three nodes, and on every graph of four: all one if and only if its parts are regular."""
    sums = _row_sums(PATH, 3, kind)
    pairs = list(itertools.combinations(range(4), 2))
    graphs = [edges for many in range(len(pairs) + 1) for edges in itertools.combinations(pairs, many)]
    one = [all(abs(total - 1) < EXACT for total in _row_sums(edges, 4, kind)) for edges in graphs]
    regular = [_parts_are_regular(edges, 4) for edges in graphs]
    shown = ", ".join(f"{total:.3f}" for total in sums)
    holds = all(one) and all(abs(total - 1) < EXACT for total in sums)
    where = "; only where every connected part is regular are they one" if one == regular else ""
    return Outcome(
        "gcn-rows-normalised",
        "holds" if holds else "fails",
        f"on the path 0 - 1 - 2 the rows sum to {shown}{'' if holds else where}",
        {
            "row_sums_on_the_path": shown,
            "graphs_of_4_nodes": len(graphs),
            "with_rows_of_sum_one": sum(one),
            "with_regular_parts": sum(regular),
            "the_same_graphs": "yes" if one == regular else "no",
        },
    )


def _row_sums(edges: Edges, nodes: int, kind: str) -> list[float]:
    ends = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    matrix = graph.normalise(ends, nodes, kind, dtype=torch.float64)
    return [float(total) for total in matrix.to_dense().sum(dim=1)]


def _parts_are_regular(edges: Edges, nodes: int) -> bool:
    """Whether neighbours always have equal degrees, so that every connected part is regular."""
    degrees = Counter(itertools.chain(*edges))
    return all(degrees[a] == degrees[b] for a, b in edges)


CHECKS: Mapping[str, Callable[[], Outcome]] = {
    "conv-is-linear": conv_is_linear,
    "cnn-fewer-parameters": cnn_fewer_parameters,
    "softmax-quadratic": softmax_quadratic,
    "taylor-linear": taylor_linear,
    "feature-size": feature_size,
    "heads-equal": heads_equal,
    "perplexity-is-exp-ce": perplexity_is_exp_ce,
    "cosine-semantic": cosine_semantic,
    "gcn-rows-normalised": gcn_rows_normalised,
}


def outcomes(notify: Callable[[str], None] | None = None) -> dict[str, Outcome]:
    """The outcome of every check. `notify` gets the name of each before it is computed: all take some seconds."""
    found = {}
    for name, check in CHECKS.items():
        if notify is not None:
            notify(name)
        found[name] = check()
    return found
