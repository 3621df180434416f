from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.models.decoding import greedy

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
