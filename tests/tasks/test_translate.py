"""Translation as a task: tensors, loss, decoding under both protocols, scores, exhibits and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support import tiny
from support.small_study import loop_machine, workers_here
from tiebreak import api, catalog
from tiebreak.cli.use import use
from tiebreak.data.pairs import characters
from tiebreak.data.pairs.pair_data import PairData
from tiebreak.errors import TiebreakError
from tiebreak.models import decoding
from tiebreak.models.design import END, PADDING, START, UNKNOWN, Sentences
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.translate import Translate

TASK = Translate()
OPTIONS = complete(registry.TASKS["translate"].options, {})


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> PairData:
    folder = tiny.write_pairs(tmp_path_factory.mktemp("pairs"))
    return TASK.load("./pairs", folder)


class Written(nn.Module):
    """A translator that writes given sentences, whatever it reads: rows of symbols, one for each source."""

    def __init__(self, rows: list[list[int]], symbols: int) -> None:
        super().__init__()
        self.rows, self.symbols = rows, symbols
        self.nothing = nn.Parameter(torch.zeros(()))

    def forward(self, source: Tensor, given: Tensor) -> Tensor:
        return torch.zeros(*given.shape, self.symbols)

    def encode(self, source: Tensor) -> Tensor:
        return torch.stack([torch.arange(len(source)), torch.zeros(len(source), dtype=torch.long)], dim=1)

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        next_ = [self.rows[row][place] if place < len(self.rows[row]) else END for row, place in state.tolist()]
        return 9.0 * F.one_hot(torch.tensor(next_), self.symbols).float(), state + torch.tensor([0, 1])


def scores(task: Translate, network: nn.Module, batch: dict[str, Tensor]) -> dict[str, float]:
    outcomes = task.outcomes(network, batch)
    return task.score({name: values.detach().numpy() for name, values in outcomes.items()})[0]


def batch_of(*targets: list[int]) -> dict[str, Tensor]:
    width = max(map(len, targets)) + 1
    wanted = torch.tensor([[*row, END] + [PADDING] * (width - len(row) - 1) for row in targets])
    given = torch.cat([torch.full((len(targets), 1), START), wanted[:, :-1]], dim=1)
    return {"source": torch.full((len(targets), 2), 4), "inputs": given, "targets": wanted}


def test_tensors_are_shifted_and_padded(data: PairData) -> None:
    split = TASK.split(data, "train", OPTIONS, {})
    shape = TASK.shape(data)
    assert shape == Sentences(sources=7, targets=7, source_length=4, target_length=4)
    assert split["source"].shape == (96, 4)
    source, target = data.pairs["train"][0]
    numbers = [data.target_symbols.index(letter) + 4 for letter in target]
    assert split["targets"][0, : len(target) + 1].tolist() == [*numbers, END]
    assert split["inputs"][0, : len(target) + 1].tolist() == [START, *numbers]
    assert split["source"][0, len(source)] == END
    assert (split["inputs"][:, 1:] != END).all(), "the end is never given, only wanted"
    assert ((split["targets"] == PADDING).sum(dim=1) + (split["targets"] != PADDING).sum(dim=1) == 4).all()


def test_data_and_networks_mean_the_same_by_the_special_symbols() -> None:
    assert (PADDING, START, END, UNKNOWN) == (characters.PAD, characters.SOS, characters.EOS, characters.UNK)


def test_the_loss_is_the_mean_over_real_symbols(data: PairData) -> None:
    batch = batch_of([4, 5], [6])
    logits = torch.randn(2, 3, 8)
    weights = torch.full((2,), 0.5)
    network = lambda source, given: logits  # noqa: E731
    for smoothing in (0.0, 0.1):
        hypers = {"label_smoothing": torch.tensor(smoothing)} if smoothing else {}
        expected = F.cross_entropy(
            logits.flatten(0, 1), batch["targets"].flatten(), ignore_index=PADDING, label_smoothing=smoothing
        )
        torch.testing.assert_close(TASK.loss(network, batch, weights, hypers), expected)
    padded = {name: torch.cat([values, values[:1]]) for name, values in batch.items()}
    logits = torch.cat([logits, torch.randn(1, 3, 8)])
    with_padding = TASK.loss(network, padded, torch.tensor([0.5, 0.5, 0.0]), {})
    torch.testing.assert_close(with_padding, TASK.loss(lambda source, given: logits[:2], batch, weights, {}))


def test_scores_of_written_sentences() -> None:
    batch = batch_of([4, 5, 6, 7], [4, 5])
    found = scores(TASK, Written([[4, 5, 6, 7], [4, 6]], 8), batch)
    assert found["error"] == pytest.approx(0.25)  # (0/4 + 1/2) / 2
    assert found["cer"] == pytest.approx(1 / 6)
    assert found["exact"] == 0.5
    assert found["loss"] == pytest.approx(np.log(8))


def test_as_reported_the_last_symbol_of_a_sentence_without_end_is_dropped() -> None:
    batch = batch_of([4, 5, 6], [4])
    endless = Written([[4, 5, 6, 6, 6, 6], [4]], 8)
    reported = TASK.with_options({"steps": 3, "drop_last": True})
    assert scores(TASK.with_options({"steps": 3}), endless, batch)["error"] == 0.0
    assert scores(reported, endless, batch)["error"] == pytest.approx((1 / 3 + 0) / 2)
    assert scores(reported.with_options({"decoding": "whole"}), endless, batch)["error"] == pytest.approx(
        (1 / 3 + 0) / 2
    )
    assert registry.TASKS["translate"].protocols["as-reported"].options == {"steps": 49, "drop_last": True}


@pytest.mark.parametrize("design", ["translator-plain", "translator-attention", "translator-transformer"])
def test_a_beam_of_one_is_greedy_and_a_wider_one_works_for_every_design(data: PairData, design: str) -> None:
    network = catalog.DESIGNS[design].network(TASK.shape(data), {"width": 16}, 3).eval()
    split = {name: values[:8] for name, values in TASK.split(data, "test", OPTIONS, {}).items()}
    with torch.no_grad():
        plain, one, five = (
            TASK.with_options({"beam": width}).outcomes(network, split)["written"] for width in (1, 1, 5)
        )
    assert torch.equal(plain, one)
    assert five.shape == plain.shape


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("design", [name for name in catalog.DESIGNS if name.startswith("translator-")])
def test_stopping_early_changes_no_outcome(
    data: PairData, design: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = catalog.DESIGNS[design].network(TASK.shape(data), {"width": 16}, 3).eval()
    split = {name: values[:8] for name, values in TASK.split(data, "test", OPTIONS, {}).items()}
    task = TASK.with_options({"beam": width})
    with torch.no_grad():
        early = task.outcomes(network, split)
        monkeypatch.setattr(decoding, "_all_ended", lambda ended, done: False)
        late = task.outcomes(network, split)
    assert all(torch.equal(early[name], late[name]) for name in late)


def test_as_reported_sentences_that_have_ended_stop_before_the_49_steps() -> None:
    calls = []

    class Counted(Written):
        def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            calls.append(token)
            return super().step(token, state)

    network = Counted([[4, 5, 6], [4]], 8)
    outcomes = TASK.with_options({"steps": 49, "drop_last": True}).outcomes(network, batch_of([4, 5, 6], [4]))
    assert len(calls) == 4
    assert outcomes["written"].tolist() == [[4, 5, 6] + [END] * 46, [4] + [END] * 48]
    assert outcomes["length"].tolist() == [3, 1]


@pytest.mark.parametrize("design", ["translator-attention", "translator-plain"])
def test_exhibits_show_sentences_lengths_and_where_it_looked(data: PairData, design: str) -> None:
    network = catalog.DESIGNS[design].network(TASK.shape(data), {"width": 16}, 0).eval()
    shown = TASK.exhibits(network, data, OPTIONS, (3, 1))
    assert shown["samples"]["input"].tolist() == [data.pairs["test"][index][0] for index in (3, 1)]
    assert shown["samples"]["reference"].tolist() == [data.pairs["test"][index][1] for index in (3, 1)]
    assert int(shown["curves"]["length_n"].sum()) == 24
    assert ("attention" in shown) == (design == "translator-attention")
    if "attention" in shown:
        assert shown["attention"]["weights_0"].shape == (
            len(shown["attention"]["rows_0"]), len(shown["attention"]["columns_0"])
        )  # fmt: skip
    assert set(TASK.exhibits(network, data, OPTIONS, ())) == {"curves"}


def known(data: PairData) -> TrainedOn:
    return TrainedOn(shape=TASK.shape(data), vocabulary=TASK.vocabulary(data), options=OPTIONS)


HOW: dict[str, Any] = complete(registry.TASKS["translate"].use, {})


def test_an_answer_says_what_was_done_to_the_sentence(data: PairData) -> None:
    network = catalog.DESIGNS["translator-attention"].network(TASK.shape(data), {"width": 16}, 0).eval()
    reply = TASK.answer(network, "  Aß c!", known(data), {**HOW, "show_attention": True})
    assert "read as 'a c !'" in reply.note
    assert "characters not seen in training" in reply.note
    assert "longer than the 3 characters of training" in reply.note
    assert reply.attention is not None
    assert reply.attention.columns[:2] == ("a", "�")
    assert reply.attention.weights.shape == (len(reply.attention.rows), len(reply.attention.columns))
    assert TASK.answer(network, "abc", known(data), HOW).note == ""
    with pytest.raises(TiebreakError, match="nothing to translate"):
        TASK.answer(network, " \t", known(data), HOW)


def test_a_design_without_attention_says_that_it_has_none_to_show(data: PairData) -> None:
    network = catalog.DESIGNS["translator-plain"].network(TASK.shape(data), {"width": 16}, 0).eval()
    reply = TASK.answer(network, "abc", known(data), {**HOW, "show_attention": True})
    assert reply.attention is None
    assert "no attention to show" in reply.note


def test_a_study_of_ones_own_pairs_ends_with_a_translator_that_can_be_used(tmp_path: Path) -> None:
    tiny.write_pairs(tmp_path)
    study = Study.model_validate(
        {
            "name": "own-pairs",
            "question": "Does attention help?",
            "task": "translate",
            "data": str(tmp_path / "pairs"),
            "metric": "error",
            "margin": 0.01,
            "seeds": 2,
            "budget": {"epochs": 1, "batch": 16},
            "optimiser": {"kind": "adam"},
            "fixed": {"lr": 0.01},
            "arms": [
                {"name": "plain", "design": "translator-plain", "build": {"width": 16}},
                {"name": "beam", "design": "translator-plain", "build": {"width": 16}, "evaluation": {"beam": 3}},
            ],
            "comparisons": [{"a": "plain", "b": "beam"}],
        }
    )
    with workers_here():
        result = api.run(study, tmp_path / "out", machine=loop_machine(), listen=lambda message: None)
    assert result.verdict.finished == 2
    page = result.report.read_text("utf-8")
    assert "Sample outputs" in page
    assert "accuracy" not in page
    used = use(tmp_path / "out", "cab", how={"beam": 2})
    assert len(used.reply.answers) == 1
    with pytest.raises(TiebreakError, match=r"--beam: .*at most 100, not 0"):
        use(tmp_path / "out", "cab", how={"beam": 0})
