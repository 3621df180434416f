from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from support import tiny
from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import CorpusData
from tiebreak.data.text.grammar import make_grammar
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Words
from tiebreak.models.recurrent_language import LstmLanguage, RnnSigmoid
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Optimiser
from tiebreak.tasks.interface import Online, TrainedOn
from tiebreak.tasks.language import Language
from tiebreak.train.evaluate import evaluate
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state

TASK = Language()


def data(sizes: tuple[int, int, int] = (400, 101, 97), words: int = 9) -> CorpusData:
    random = np.random.default_rng(0)
    vocabulary = ("<unk>", "<eos>", *(f"w{number}" for number in range(words - 2)))
    return CorpusData(
        name="made-up",
        tokens={
            split: random.integers(0, words, size).astype(np.int32)
            for split, size in zip(("train", "val", "test"), sizes, strict=True)
        },
        words=vocabulary,
        level="word",
        checksum="",
        official=None,
        licence="",
        citation="",
    )


def options(**given: Scalar) -> dict[str, Scalar]:
    return complete(registry.TASKS["language"].options, {"streams": 4, "window": 5, **given})


def network_for(own: CorpusData, **given: Scalar) -> RnnSigmoid:
    torch.manual_seed(0)
    return RnnSigmoid(TASK.with_options(options(**given)).shape(own), 6, 8)


@settings(deadline=None, max_examples=60)
@given(size=st.integers(2, 300), streams=st.integers(1, 7), window=st.integers(1, 9))
def test_every_token_but_the_first_is_wanted_once_after_the_one_before_it(size: int, streams: int, window: int) -> None:
    own = data((max(size, streams * window + 1),) * 3)
    chosen = options(streams=streams, window=window)
    split = TASK.split(own, "val", chosen, {})
    text = own.tokens["val"].tolist()
    assert split["inputs"].shape == (TASK.sizes(own, chosen)["val"], streams, window)
    assert split["real"].sum() == len(text) - 1
    rows = {name: values.transpose(0, 1).flatten(1) for name, values in split.items()}  # [streams, time]
    real = rows["real"].bool()
    assert rows["inputs"][real].tolist() == text[:-1]  # streams follow one another in the text
    assert rows["targets"][real].tolist() == text[1:]
    assert bool((split["real"].sum(dim=(1, 2)) > 0).all()), "no window is empty"


@pytest.mark.parametrize("window", [0, 3, 40])
def test_the_perplexity_is_that_of_the_whole_text_read_by_a_plain_loop(window: int) -> None:
    own, chosen = data((400, 200, 190)), options(evaluation_window=window)
    network = network_for(own)
    metrics, kept = evaluate(TASK, network, TASK.split(own, "test", chosen, {}))
    text = torch.from_numpy(own.tokens["test"].astype(np.int64))
    length, total = math.ceil((len(text) - 1) / 4), 0.0
    for first in range(0, len(text) - 1, length):  # each of the four streams from a state of zeros
        state = network.begin(1)
        for place in range(first, min(first + length, len(text) - 1)):
            logits, state = network.step(text[place : place + 1], state)
            total -= float(logits.log_softmax(-1)[0, text[place + 1]].detach())
    assert metrics["loss"] == pytest.approx(total / (len(text) - 1), rel=1e-5)
    assert metrics["perplexity"] == math.exp(metrics["loss"]), "exactly"
    assert all(len(values) == TASK.sizes(own, chosen)["test"] for values in kept.values())


def test_evaluation_leaves_the_state_of_training_alone() -> None:
    own = data()
    network = network_for(own)
    network.carry.state.fill_(0.3)
    split = TASK.split(own, "val", options(), {})
    first = evaluate(TASK, network, split)[0]
    assert torch.equal(network.carry.state, torch.full((4, 8), 0.3))
    assert evaluate(TASK, network, split)[0] == first, "it starts from zeros every time"


def run_of(kind: str, epochs: int = 2, **hypers: float) -> Run:
    known = {name: hyper.default for name, hyper in registry.HYPERS.items()}
    return Run(
        design="rnn-sigmoid",
        source="",
        build={},
        task="language",
        options=options(),
        data="made-up",
        checksum="",
        optimiser=Optimiser.model_validate({"kind": kind}),
        hypers={**known, "dropout": 0.0, **hypers},
        setting={},
        seed=0,
        epochs=epochs,
        batch=1,
        comparability=1,
        evaluations=({},),
    )


def test_training_is_truncated_back_propagation_with_gradients_summed_over_a_pass() -> None:
    """The loop of R4 beside ours: gradients zeroed once a pass, the state carried on without its history."""
    own, rate, decay = data(), 0.01, 0.003
    network, theirs = (network_for(own).double() for _ in range(2))
    run = run_of("sgd-summed", lr=rate, weight_decay=decay)
    trainer = Loop(TASK, network, run, initial_state(network, run))
    split = TASK.split(own, "train", options(), {})
    losses = [trainer.train_epoch(split, lambda share, steps: None)[0] for _ in range(2)]
    optimiser = torch.optim.SGD(theirs.parameters(), lr=rate, weight_decay=decay)
    theirs.eval()
    for epoch in range(2):
        optimiser.zero_grad()
        state, seen = theirs.begin(4), []
        for given_, wanted, real in zip(split["inputs"], split["targets"], split["real"], strict=True):
            total = torch.zeros((), dtype=torch.float64)
            for place in range(given_.shape[1]):
                logits, state = theirs.step(given_[:, place], state)
                each = nn.functional.cross_entropy(logits, wanted[:, place], reduction="none")
                total = total + (each * real[:, place]).sum()
            loss = total / real.sum()
            loss.backward()
            optimiser.step()
            state = state.detach()
            seen.append(float(loss.detach()))
        assert losses[epoch] == pytest.approx(sum(seen) / len(seen), rel=1e-9)
    for mine, wanted in zip(network.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-9, atol=1e-11)


def test_a_split_too_short_for_its_windows_is_refused() -> None:
    with pytest.raises(TiebreakError, match="use fewer streams"):
        TASK.split(data((400, 20, 97)), "val", options(), {})


def test_what_evaluation_that_trains_has_seen_is_scored_token_by_token() -> None:
    assert isinstance(TASK, Online)
    assert not TASK.trains_in_evaluation
    assert TASK.with_options({"evaluation_trains": True}).trains_in_evaluation
    modes = {name: TASK.with_options({name: True}) for name in ("evaluation_trains", "training_mode", "window")}
    assert [name for name, task in modes.items() if task.evaluates_in_training_mode] == list(modes)[:2]
    assert not modes["training_mode"].trains_in_evaluation
    split = TASK.split(data((400, 98, 97)), "val", options(), {})
    losses = np.linspace(1.0, 2.0, len(split["real"]))
    counts = split["real"].sum(dim=(1, 2)).numpy()
    metrics, _ = TASK.score(TASK.outcomes_from_losses(split, losses))
    assert counts[-1] < counts[0]
    assert metrics["loss"] == pytest.approx(float((losses * counts).sum() / counts.sum()))


def test_label_smoothing_is_that_of_torch() -> None:
    own = data()
    network = network_for(own).eval()
    batch = {name: values[:1] for name, values in TASK.split(own, "train", options(), {}).items()}
    found = TASK.loss(network, batch, torch.ones(1), {"label_smoothing": torch.tensor(0.1)})
    logits = network(batch["inputs"]).flatten(0, 2)
    wanted = nn.functional.cross_entropy(logits, batch["targets"].flatten(), label_smoothing=0.1)
    torch.testing.assert_close(found, wanted)


def test_level_and_vocabulary_are_those_of_the_options(tmp_path: Path) -> None:
    tiny.write_text(tmp_path)
    assert TASK.load("./text", tmp_path).level == "word"
    assert TASK.with_options({"vocabulary": 5}).load("./text", tmp_path).words[:2] == ("<unk>", "<eos>")
    assert len(TASK.with_options({"vocabulary": 5}).load("./text", tmp_path).words) == 5
    assert TASK.with_options({"level": "character"}).load("./text", tmp_path).level == "character"


# what a trained network writes


class Counting(nn.Module):
    """Says the word after the sum of all that it has read: what it writes depends on the whole prompt."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.eye(words) * 50)

    def begin(self, rows: int) -> torch.Tensor:
        return torch.zeros(rows, dtype=torch.long)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = state + token
        return self.words[state % len(self.words)], state


def known(own: CorpusData) -> TrainedOn:
    return TrainedOn(shape=Words(words=9, streams=4, window=5), vocabulary=TASK.vocabulary(own), options=options())


def how(**given: Scalar) -> dict[str, Scalar]:
    return complete(registry.TASKS["language"].use, given)


def test_the_whole_prompt_decides_and_the_text_ends_at_the_end_of_a_line() -> None:
    own = data()
    reply = TASK.answer(Counting(9), "w0 w1", known(own), how(words=3))  # 2 + 3 = 5, then 10 % 9 = 1: the end
    assert [answer.text for answer in reply.answers] == ["w0 w1 w3"]
    assert reply.note == ""
    assert TASK.answer(Counting(9), "w1", known(own), how(words=3)).answers[0].text == "w1 w1 w4 w1"


def test_unknown_words_are_told_or_refused_and_nothing_starts_a_line() -> None:
    own = data()
    reply = TASK.answer(Counting(9), "w0 palo alto palo", known(own), how(words=1))
    assert reply.answers[0].text == "w0 <unk> <unk> <unk> w0".replace("<unk> <unk> <unk>", "palo alto palo")
    assert "read as <unk>: palo, alto" in reply.note
    assert TASK.answer(Counting(9), "", known(own), how(words=1)).answers[0].text == ""
    strict = replace(own, words=tuple(f"w{number}" for number in range(9)))
    with pytest.raises(TiebreakError, match="not in the vocabulary"):
        TASK.answer(Counting(9), "palo", known(strict), how())
    with pytest.raises(TiebreakError, match="nothing to continue"):
        TASK.answer(Counting(9), "", known(strict), how())


def test_a_network_that_cannot_write_says_what_it_lacks() -> None:
    own = data()
    with pytest.raises(TiebreakError, match="no `begin`"):
        TASK.answer(nn.Linear(9, 9), "w0", known(own), how())


def test_a_seed_repeats_its_texts_and_another_writes_others() -> None:
    own = data()
    network = network_for(own).eval()
    texts = [
        [
            answer.text
            for answer in TASK.answer(network, "w0", known(own), how(n=5, sampling_seed=seed, words=20)).answers
        ]
        for seed in (0, 0, 1)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) == 5


def test_exhibits_are_texts_of_the_same_beginnings_for_every_design() -> None:
    own = data((400, 101, 4000), words=30)
    shown = [
        TASK.exhibits(network.eval(), own, options(), [0])["samples"]
        for network in (network_for(own), LstmLanguage(TASK.with_options(options()).shape(own), 6, 8))
    ]
    assert list(shown[0]["input"]) == list(shown[1]["input"])
    assert len(shown[0]["input"]) == len(shown[0]["output"]) == 4
    assert TASK.exhibits(network_for(own), own, options(), []) == {}


# a language whose entropy is known


def test_no_network_gets_below_the_entropy_of_a_known_language_and_an_lstm_comes_near() -> None:
    own = corpus.load("markov")
    chosen = options(streams=32, window=20)
    task = TASK.with_options(chosen)
    torch.manual_seed(0)
    network = LstmLanguage(task.shape(own), 32, 32, layers=1)
    run = run_of("adam", epochs=6, lr=0.01).model_copy(
        update={"optimiser": Optimiser.model_validate({"kind": "adam", "schedule": {"kind": "linear"}})}
    )
    trainer = Loop(task, network, run, initial_state(network, run))
    split = task.split(own, "train", chosen, {})
    for _ in range(6):
        trainer.train_epoch(split, lambda share, steps: None)
    ((metrics, _),) = trainer.evaluate(task.split(own, "test", chosen, {}))
    floor = make_grammar().realised(own.tokens["test"])
    assert floor < metrics["perplexity"] < 1.03 * floor
