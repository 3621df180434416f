from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.models import decoding
from tiebreak.models.decoding import GPU_STRIDE, beam, greedy

START, END, VOCABULARY, HIDDEN = 0, 1, 6, 5
Carry = dict[str, tuple[Tensor, Tensor]]


class Speaker(nn.Module):
    """A tiny recurrent model; its state is nested on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.inner = nn.Linear(2 * HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, VOCABULARY)
        nn.init.normal_(self.out.weight, std=2)

    def forward(self, tokens: Tensor, state: Carry) -> tuple[Tensor, Carry]:
        hidden, count = state["inner"]
        hidden = torch.tanh(self.inner(torch.cat([self.embedding(tokens), hidden], dim=-1)))
        return self.out(hidden), {"inner": (hidden, count + 1)}


def begin(hidden: Tensor) -> tuple[Carry, Tensor]:
    rows = len(hidden)
    return {"inner": (hidden, torch.zeros(rows))}, torch.full((rows,), START)


def one_by_one(model: Speaker, hidden: Tensor, steps: int) -> list[list[int]]:
    """Sentence by sentence, stopping at `end`."""
    sentences = []
    for row in hidden:
        state, token = begin(row[None])
        sentence: list[int] = []
        while len(sentence) < steps:
            logits, state = model(token, state)
            token = logits.argmax(-1)
            if int(token) == END:
                break
            sentence.append(int(token))
        sentences.append(sentence)
    return sentences


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 9))
def test_a_batch_says_what_each_sentence_alone_says(seed: int, rows: int, steps: int) -> None:
    torch.manual_seed(seed)
    model, hidden = Speaker().double(), torch.randn(rows, HIDDEN, dtype=torch.float64)
    with torch.no_grad():
        tokens, lengths = greedy(model, *begin(hidden), END, steps)
        sentences = one_by_one(model, hidden, steps)
    assert tokens.shape == (rows, steps)
    assert tokens.dtype == lengths.dtype == torch.int64
    assert lengths.tolist() == [len(sentence) for sentence in sentences]
    assert tokens.tolist() == [sentence + [END] * (steps - len(sentence)) for sentence in sentences]


def test_sentences_end_at_different_steps_or_never() -> None:
    script = torch.tensor([[2, 3, END, 4], [END, 2, 2, 2], [2, 2, 2, 2], [3, 3, 3, END]])

    def recite(tokens: Tensor, step: int) -> tuple[Tensor, int]:
        return nn.functional.one_hot(script[:, step], 5).float(), step + 1

    tokens, lengths = greedy(recite, 0, torch.full((4,), START), END, 4)
    assert tokens.tolist() == [[2, 3, END, END], [END] * 4, [2, 2, 2, 2], [3, 3, 3, END]]
    assert lengths.tolist() == [2, 0, 4, 3]


@pytest.mark.parametrize("traced", [False, True])
def test_runs_together_say_what_each_run_alone_says(traced: bool) -> None:
    torch.manual_seed(0)
    models = [Speaker().double() for _ in range(4)]
    params, _ = stack_module_state(models)
    hidden = torch.randn(7, HIDDEN, dtype=torch.float64)  # the same test sentences for all runs

    def decode(params: dict[str, Tensor], hidden: Tensor) -> tuple[Tensor, Tensor]:
        return greedy(lambda tokens, state: functional_call(models[0], params, (tokens, state)), *begin(hidden), END, 8)

    together = vmap(decode, in_dims=(0, None))
    if traced:
        together = make_fx(together)(params, hidden)
    tokens, lengths = together(params, hidden)
    for run, model in enumerate(models):
        alone = greedy(model, *begin(hidden), END, 8)
        assert torch.equal(tokens[run], alone[0])
        assert torch.equal(lengths[run], alone[1])
    assert len(torch.unique(lengths)) > 1


class Hypothesis(NamedTuple):
    tokens: list[int]
    total: float
    state: Carry

    def score(self, penalty: float) -> float:
        return self.total / math.pow(len(self.tokens), penalty)

    @property
    def ended(self) -> bool:
        return END in self.tokens


def grown(model: Speaker, hypothesis: Hypothesis) -> list[Hypothesis]:
    """Every continuation by one token."""
    token = torch.tensor([hypothesis.tokens[-1] if hypothesis.tokens else START])
    logits, state = model(token, hypothesis.state)
    logs = logits[0].log_softmax(-1).tolist()
    return [Hypothesis([*hypothesis.tokens, v], hypothesis.total + log, state) for v, log in enumerate(logs)]


def search(model: Speaker, hidden: Tensor, steps: int, width: int | None, penalty: float) -> Hypothesis:
    """One sentence, hypothesis by hypothesis; `width` None keeps them all."""
    pool = [Hypothesis([], 0.0, begin(hidden[None])[0])]
    for _ in range(steps):
        pool = [new for old in pool for new in ([old] if old.ended else grown(model, old))]
        pool = sorted(pool, key=lambda hypothesis: -hypothesis.score(penalty))[:width]
    return pool[0]


def padded(tokens: list[int], steps: int) -> list[int]:
    return tokens + [END] * (steps - len(tokens))


def speaker(seed: int, rows: int, vocabulary: int = VOCABULARY) -> tuple[Speaker, Tensor]:
    torch.manual_seed(seed)
    model = Speaker()
    model.out = nn.Linear(HIDDEN, vocabulary)
    nn.init.normal_(model.out.weight, std=2)
    return model.double(), torch.randn(rows, HIDDEN, dtype=torch.float64)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 9), st.sampled_from([0.0, 0.6, 1.0]))
def test_a_beam_of_one_is_greedy(seed: int, rows: int, steps: int, penalty: float) -> None:
    model, hidden = speaker(seed, rows)
    with torch.no_grad():
        expected = greedy(model, *begin(hidden), END, steps)
        got = beam(model, *begin(hidden), END, steps, 1, penalty=penalty)
    assert torch.equal(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


def test_a_beam_of_one_is_greedy_where_log_probabilities_cannot_tell_tokens_apart() -> None:
    close = torch.nextafter(torch.tensor(0.0), torch.tensor(1.0))
    logits = torch.tensor([[0.0, 0.0, float(close), 0.0], [0.0, 30.0, 30.0, 0.0]])
    assert len(set(logits.log_softmax(-1)[0].tolist())) == 1

    def say(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return logits[state], state

    rows = (torch.arange(2), torch.full((2,), START), 3, 4)
    assert torch.equal(beam(say, *rows, 1)[0], greedy(say, *rows)[0])
    assert greedy(say, *rows)[0].tolist() == [[2] * 4, [1] * 4]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 4), st.sampled_from([0.0, 1.0]))
def test_a_beam_as_wide_as_all_prefixes_is_exhaustive_search(
    seed: int, vocabulary: int, steps: int, penalty: float
) -> None:
    model, hidden = speaker(seed, 2, vocabulary)
    width = sum((vocabulary - 1) ** length for length in range(steps + 1))
    with torch.no_grad():
        tokens, lengths = beam(model, *begin(hidden), END, steps, width, penalty=penalty)
        best = [search(model, row, steps, None, penalty).tokens for row in hidden]
    assert tokens.tolist() == [padded(row, steps) for row in best]
    assert lengths.tolist() == [sum(token != END for token in row) for row in best]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 7), st.integers(1, 9), st.sampled_from([0.0, 0.6, 1.0]))
def test_a_beam_keeps_what_one_sentence_and_one_hypothesis_at_a_time_keeps(
    seed: int, rows: int, steps: int, width: int, penalty: float
) -> None:
    model, hidden = speaker(seed, rows)
    with torch.no_grad():
        tokens, lengths = beam(model, *begin(hidden), END, steps, width, penalty=penalty)
        expected = [padded(search(model, row, steps, width, penalty).tokens, steps) for row in hidden]
    assert tokens.dtype == lengths.dtype == torch.int64
    assert tokens.tolist() == expected
    assert lengths.tolist() == [sum(token != END for token in row) for row in expected]


def chain(probabilities: list[list[float]]) -> tuple[Tensor, Tensor]:
    """A Markov chain over tokens as (logits by the token before, the state of two sentences)."""
    return torch.tensor(probabilities, dtype=torch.float64).log(), torch.zeros(2, 0)


@pytest.mark.parametrize(
    ("width", "penalty", "expected"),
    [
        (1, 1.0, [2, 2, 2]),  # as greedy: 0.6 * 0.4 * 0.4
        (2, 0.0, [3, END, END]),  # 0.4 * 0.9, which the first step liked less
        (2, 1.0, [3, END, END]),
    ],
)
def test_a_beam_finds_what_greedy_misses(width: int, penalty: float, expected: list[int]) -> None:
    logits, state = chain([[0, 0, 0.6, 0.4], [0.25] * 4, [0.25, 0.35, 0.4, 0], [0.05, 0.9, 0.05, 0]])

    def say(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return logits[tokens], state

    tokens, lengths = beam(say, state, torch.full((2,), START), END, 3, width, penalty=penalty)
    assert tokens.tolist() == [expected] * 2
    assert lengths.tolist() == [sum(token != END for token in expected)] * 2


def test_the_penalty_chooses_between_short_and_likely_per_token() -> None:
    logits, state = chain([[0, 0.5, 0.5, 0], [0.25] * 4, [0, 0.1, 0, 0.9], [0, 1.0, 0, 0]])

    def say(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return logits[tokens], state

    start = torch.full((2,), START)
    assert beam(say, state, start, END, 4, 3, penalty=0.0)[0].tolist() == [[END] * 4] * 2  # 0.5
    tokens, lengths = beam(say, state, start, END, 4, 3, penalty=1.0)  # 0.45 ** (1 / 3)
    assert tokens.tolist() == [[2, 3, END, END]] * 2
    assert lengths.tolist() == [2, 2]


def test_ties_go_to_the_smaller_token() -> None:
    def say(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(tokens), 5), state

    tokens, _ = beam(say, torch.zeros(3, 1), torch.full((3,), START), 4, 4, 3)
    assert tokens.tolist() == [[0] * 4] * 3


def test_no_two_hypotheses_are_the_same() -> None:
    seen = []

    def say(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.cat([state[:, 1:], tokens[:, None]], dim=1)
        seen.append(state)
        return torch.linspace(0, 1, 7).expand(len(tokens), 7), state

    beam(say, torch.zeros(2, 5, dtype=torch.int64), torch.full((2,), START), END, 5, 4)
    for state in seen[1:]:
        for sentence in state.reshape(2, 4, 5).tolist():
            assert len({tuple(row) for row in sentence}) == 4


def test_a_state_that_is_not_made_of_tensors_is_refused() -> None:
    def say(tokens: Tensor, state: int) -> tuple[Tensor, int]:
        return torch.zeros(len(tokens), 3), state + 1

    with pytest.raises(AssertionError, match="made of tensors, not of int"):
        beam(say, 0, torch.full((2,), START), END, 2, 2)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("width", [1, 3, 9])
def test_runs_together_search_as_each_run_alone(traced: bool, width: int) -> None:
    models = [speaker(seed, 1)[0] for seed in range(3)]
    params, _ = stack_module_state(models)
    hidden = speaker(0, 5)[1]

    def decode(params: dict[str, Tensor], hidden: Tensor) -> tuple[Tensor, Tensor]:
        def step(tokens: Tensor, state: Carry) -> tuple[Tensor, Carry]:
            logits, following = functional_call(models[0], params, (tokens, state))
            return logits, following

        return beam(step, *begin(hidden), END, 6, width)

    together = vmap(decode, in_dims=(0, None))
    if traced:
        together = make_fx(together)(params, hidden)
    tokens, lengths = together(params, hidden)
    for run, model in enumerate(models):
        alone = beam(model, *begin(hidden), END, 6, width)
        assert torch.equal(tokens[run], alone[0])
        assert torch.equal(lengths[run], alone[1])
    assert len(torch.unique(lengths)) > 1


# early stop


class Counted:
    """A model and how often it was asked."""

    def __init__(self, model: Callable[[Tensor, Carry], tuple[Tensor, Carry]]) -> None:
        self.model, self.calls = model, 0

    def __call__(self, tokens: Tensor, state: Carry) -> tuple[Tensor, Carry]:
        self.calls += 1
        return self.model(tokens, state)


def asking(every: int, decode: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """What is decoded if all steps but every so many go on unasked, as on a GPU; 0: the twin that takes every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_all_ended", lambda ended, done: every and done % every == 0 and bool(ended.all()))
        return decode()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 5),
    vocabulary=st.sampled_from([2, 3, 6]),
    eager=st.sampled_from([-2.0, 0.0, 3.0]),
    width=st.sampled_from([0, 1, 2, 5, 9]),
    penalty=st.sampled_from([0.0, 0.6, 1.0]),
)
def test_stopping_early_changes_nothing(
    seed: int, rows: int, vocabulary: int, eager: float, width: int, penalty: float
) -> None:
    model, hidden = speaker(seed, rows, vocabulary)
    whole, rarely, short = Counted(model), Counted(model), Counted(model)

    def decode(step: Counted) -> tuple[Tensor, Tensor]:
        if width == 0:
            return greedy(step, *begin(hidden), END, 24)
        return beam(step, *begin(hidden), END, 24, width, penalty=penalty)

    with torch.no_grad():
        model.out.bias[END] += eager  # some models never end, some at once
        expected = asking(0, lambda: decode(whole))
        found = [decode(short), asking(GPU_STRIDE, lambda: decode(rarely))]
    for tokens, lengths in found:
        assert torch.equal(tokens, expected[0])
        assert torch.equal(lengths, expected[1])
        assert tokens.dtype == expected[0].dtype
    assert whole.calls == 24
    assert rarely.calls == min(24, -(-short.calls // GPU_STRIDE) * GPU_STRIDE)
    if width == 0:  # it stops with the longest sentence, and only if that has an end
        assert short.calls == min(24, int(expected[1].max()) + 1)


@pytest.mark.parametrize(("width", "calls"), [(0, 1), (1, 1), (3, 2), (9, 3)])
def test_what_ends_at_once_takes_few_steps(width: int, calls: int) -> None:
    """A beam also waits for its other hypotheses, which end one step later; 9 of them take 6 tokens another step."""
    model, hidden = speaker(0, 4)
    step = Counted(model)
    with torch.no_grad():
        model.out.bias[END] += 100
        rows = begin(hidden)
        tokens, lengths = greedy(step, *rows, END, 98) if width == 0 else beam(step, *rows, END, 98, width)
    assert step.calls == calls
    assert tokens.tolist() == [[END] * 98] * 4
    assert lengths.tolist() == [0] * 4


def test_runs_together_take_every_step() -> None:
    step = Counted(lambda tokens, state: (nn.functional.one_hot(tokens * 0 + END, 3).float(), state))
    state, start = begin(torch.zeros(2, HIDDEN))

    def decode(number: Tensor) -> tuple[Tensor, Tensor]:
        return greedy(step, state, start + number, END, 20)

    tokens, _ = vmap(decode)(torch.zeros(3, dtype=torch.long))
    assert step.calls == 20
    assert tokens.tolist() == [[[END] * 20] * 2] * 3


def test_a_gpu_is_asked_now_and_then() -> None:
    class OnGpu:
        """All that is asked of a tensor."""

        is_cuda = True
        asked = 0

        def all(self) -> bool:
            self.asked += 1
            return False

    ended = OnGpu()
    for done in range(1, 98 + 1):
        decoding._all_ended(ended, done)  # type: ignore[arg-type]
    assert ended.asked == 98 // GPU_STRIDE
