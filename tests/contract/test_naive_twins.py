"""Every fast path has a naive twin, and a test compares the two on outputs and gradients at odd sizes.

The table says which: a fast path, its twin, and the test. A new fast path gets a line here.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TORCH = "torch"  # the twin is a layer or function of torch
TEST = "test"  # the twin is written out in the test

# fast path: twin, test file, test
TWINS: dict[str, tuple[str, str, str]] = {
    "layers.attention.attend": ("layers.attention.attend_naive", "layers", "both_forms_are_the_formula"),
    "layers.heads.MultiHead": ("layers.heads.multi_head_naive", "layers", "it_is_the_formula_head_by_head"),
    "layers.bilinear.Bilinear.forward": ("layers.bilinear.Bilinear.naive", "layers", "both_forms_agree"),
    "layers.pixels.attend_pixels": ("layers.pixels.attend_pixels_naive", "layers", "both_forms_agree"),
    "layers.taylor.attend": ("layers.taylor_forms.naive", "layers", "every_form_is_the_formula"),
    "layers.taylor.step": ("layers.taylor_forms.naive", "layers", "streaming_gives_the_same"),
    "layers.taylor_forms.monomials": (TEST, "layers", "monomials_are_products"),
    "layers.taylor_forms.pull_back": (TORCH, "layers", "pulling_a_gradient_back"),
    "layers.taylor_forms.polynomial": (TEST, "layers", "horners_rule"),
    "layers.graph.normalise": ("layers.graph.normalise_dense", "layers", "sparse_and_dense_are_the_same_matrix"),
    "layers.graph.propagate": (TORCH, "layers", "propagation_is_the_product_with_its_gradient"),
    "layers.sparse.multiply": (TORCH, "layers", "product_and_gradient_are_those_of_the_dense_matrix"),
    "layers.rnn.Rnn": (TORCH, "layers", "both_forms_are_torchs_rnn"),
    "layers.lstm.Lstm": (TORCH, "layers", "both_forms_are_torchs_lstm"),
    "layers.batchnorm.BatchNorm": (TORCH, "layers", "training_and_evaluation_are_torchs"),
    "layers.dropout.drop": (TEST, "layers", "it_is_the_formula_element_by_element"),
    "layers.spec_augment.spec_augment": ("layers.spec_augment.spec_augment_naive", "layers", "both_forms_agree"),
    "layers.stacked_conv.conv": (TORCH, "layers", "the_ops_are_conv2d_and_its_gradients"),
    "layers.kernels.convolution.forward": ("layers.stacked_conv.conv", "layers/kernels", "convolutions_on_a_gpu"),
    "layers.kernels.product.product": (TORCH, "layers/kernels", "products_on_a_gpu"),
    "models.speech_encoder.convolve": (TORCH, "models", "the_convolution_is_torchs"),
    "models.gcn.Gcn": (TEST, "models", "logits_are_those_of_the_formula_with_full_matrices"),
    "models.decoding.greedy": (TEST, "models", "a_batch_says_what_each_sentence_alone_says"),
    "models.decoding.beam": (TEST, "models", "a_beam_keeps_what_one_sentence_and_one_hypothesis"),
    "models.decoding.probabilities": (TEST, "models", "probabilities_are_those_of_sorting_by_hand"),
    "tasks.losses.smoothed_nll": ("tasks.losses.smoothed_nll_naive", "tasks", "values_and_gradients_are_the_formulas"),
    "tasks.losses.smoothed_cross_entropy": ("tasks.losses.smoothed_nll_naive", "tasks", "values_and_gradients"),
    "tasks.similarity.error_rates": (TEST, "tasks", "error_rates_are_edits_by_length_one_by_one"),
    "tasks.similarity.damerau_levenshtein": (TEST, "tasks", "optimal_string_alignment_is_the_table_of_prefixes"),
}


def found(name: str) -> bool:
    """Whether there is a function, class or method of this name in the package, without importing triton."""
    room, module, *rest = name.split(".")
    if rest and module == "kernels":
        source = Path(importlib.import_module("tiebreak").__path__[0]) / room / module / f"{rest[0]}.py"
        return f"def {rest[1]}(" in source.read_text("utf-8")
    part = importlib.import_module(f"tiebreak.{room}.{module}")
    for each in rest:
        part = getattr(part, each)
    return callable(part)


@pytest.mark.parametrize("name", TWINS)
def test_the_fast_path_its_twin_and_their_test_are_there(name: str) -> None:
    twin, folder, test = TWINS[name]
    assert found(name)
    assert twin in (TORCH, TEST) or found(twin)
    module = name.split(".")[2 if "kernels" in name else 1]
    files = [TESTS / folder / f"test_{module}.py", TESTS / folder / "test_sampling.py"]
    assert any(f"def test_{test}" in path.read_text("utf-8") for path in files if path.exists())
