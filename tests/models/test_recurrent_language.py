from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak import catalog
from tiebreak.errors import TiebreakError
from tiebreak.layers.buffer_updates import take_buffer_updates
from tiebreak.layers.carry import carry_on
from tiebreak.models.design import Words
from tiebreak.models.recurrent_language import LstmLanguage, RnnSigmoid, RnnTanh

SMALL = Words(words=11, streams=3, window=5)
RECURRENT = [RnnSigmoid, RnnTanh, LstmLanguage]


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def small(design: type[nn.Module], shape: Words = SMALL) -> nn.Module:
    torch.manual_seed(0)
    return design(shape, embedding=4, hidden=6).eval().double()


def tokens(*shape: int) -> Tensor:
    return torch.randint(0, SMALL.words, shape, generator=torch.Generator().manual_seed(1))


def test_the_network_of_the_report_has_as_many_parameters_as_it_says() -> None:
    assert parameters(RnnSigmoid(Words(words=10_000, streams=1, window=1))) == 8_083_728
    with torch.device("meta"):
        assert parameters(RnnSigmoid(Words(words=10_000, streams=1, window=1), 2048, 4096)) == 86_619_920


@pytest.mark.parametrize("name", ["rnn-tanh", "lstm", "transformer", "taylor-transformer"])
def test_the_other_designs_have_about_as_many(name: str) -> None:
    network = catalog.DESIGNS[name].network(Words(words=10_000, streams=1, window=1), {}, 0)
    assert parameters(network) == pytest.approx(8_083_728, rel=0.01)


def test_the_rnn_is_the_formula_of_the_report() -> None:
    network = small(RnnSigmoid)
    assert isinstance(network, RnnSigmoid)
    text = tokens(1, 3, 5)
    found = network(text)[0]
    h = torch.zeros(3, 6, dtype=torch.float64)
    for t in range(5):
        e = network.embedding.weight[text[0, :, t]]
        h = torch.sigmoid(h @ network.recur + e @ network.enter + network.bias_state)
        torch.testing.assert_close(found[:, t], h @ network.leave + network.bias_words)
    torch.testing.assert_close(take_buffer_updates(network)["carry.state"], h)


def test_the_rnn_starts_as_the_report_says() -> None:
    torch.manual_seed(0)
    network = RnnSigmoid(Words(words=2000, streams=1, window=1), 100, 300)
    limits = {"recur": 600, "enter": 400, "leave": 2300, "bias_state": 301, "bias_words": 2001}
    for name, fans in limits.items():
        values, limit = getattr(network, name).detach(), (6 / fans) ** 0.5
        assert float(values.abs().max()) <= limit
        assert float(values.abs().max()) > 0.98 * limit
    assert float(network.embedding.weight.detach().std()) == pytest.approx(1.0, abs=0.01)
    for layer in (network.dropout_words, network.dropout_output):
        assert float(layer.rate) == pytest.approx(0.1)


@pytest.mark.parametrize("design", RECURRENT)
def test_windows_read_one_after_the_other_are_the_text_read_at_once(design: type[nn.Module]) -> None:
    text = tokens(1, 3, 15)
    whole = small(design)(text)
    network = small(design)
    for start in range(0, 15, 5):
        with torch.no_grad():
            part = network(text[..., start : start + 5])
        torch.testing.assert_close(part, whole[:, :, start : start + 5].detach())
        carry_on(network)


def test_a_tied_lstm_writes_with_its_embedding_and_has_that_many_parameters_less() -> None:
    shape = Words(words=50, streams=2, window=3)
    free, tied = LstmLanguage(shape, 8, 8), LstmLanguage(shape, 8, 8, tied=True)
    assert parameters(free) - parameters(tied) == 50 * 8
    with torch.no_grad():
        tied.eval().embedding.weight[7] = 0.0
        assert float(tied(torch.ones(1, 2, 3, dtype=torch.long))[0, 0, 0, 7]) == float(tied.bias[7])
    with pytest.raises(TiebreakError, match="cannot be tied"):
        LstmLanguage(shape, 8, 9, tied=True)


def test_the_small_lstm_of_the_literature_can_be_built() -> None:
    network = LstmLanguage(Words(words=10_000, streams=20, window=20), 200, 200)
    assert parameters(network) == 10_000 * 200 * 2 + 10_000 + 2 * (4 * 200 * 400 + 8 * 200)


def test_an_lstm_of_several_layers_is_that_of_torch() -> None:
    network = small(LstmLanguage)
    assert isinstance(network, LstmLanguage)
    reference = nn.LSTM(4, 6, 2, batch_first=True).double()
    for number, layer in enumerate(network.layers):
        for name, values in layer.named_parameters():
            getattr(reference, name.replace("l0", f"l{number}")).data.copy_(values)
    text = tokens(1, 3, 5)
    outputs, (last, memory) = reference(network.embedding(text[0]))
    torch.testing.assert_close(network(text)[0], F.linear(outputs, network.leave, network.bias))  # type: ignore[arg-type]
    fresh = take_buffer_updates(network)
    torch.testing.assert_close(fresh["output.state"], last)
    torch.testing.assert_close(fresh["memory.state"], memory)
