"""The contract tests themselves: a design with a planted bug does not get past them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import test_design_outputs
import torch
from torch import Tensor

from tiebreak import catalog
from tiebreak.models.recogniser import SpeechAttention, SpeechLstm, State


class IgnoresMemory(SpeechAttention):
    """Its decoder gets zeros instead of the encoder's memory."""

    def encode(self, features: Tensor, frames: Tensor | None = None) -> State:
        """Keys and values of zeros."""
        state = super().encode(features, frames)
        return {**state, "keys": torch.zeros_like(state["keys"]), "values": torch.zeros_like(state["values"])}


class DropsCrossAttention(SpeechLstm):
    """It computes cross-attention and drops the result."""

    def _logits(self, queries: Tensor, state: State) -> Tensor:
        super()._logits(queries, state)
        return self.output(self.norm(queries))  # type: ignore[no-any-return]


@pytest.mark.parametrize("broken", [IgnoresMemory, DropsCrossAttention])
def test_a_decoder_that_does_not_see_the_encoder_is_caught(broken: type[SpeechAttention] | type[SpeechLstm]) -> None:
    name = "speech-attention" if broken is IgnoresMemory else "speech-lstm"
    test_design_outputs.test_the_loss_depends_on_the_input(catalog.DESIGNS[name])
    with pytest.raises(AssertionError):
        test_design_outputs.test_the_loss_depends_on_the_input(replace(catalog.DESIGNS[name], build=broken))
    with pytest.raises(AssertionError):
        test_design_outputs.test_a_plan_would_find_that_it_uses_its_input(replace(catalog.DESIGNS[name], build=broken))
