"""Every fast path has a naive twin, and a test compares the two on outputs and gradients at odd sizes.

The table says which: a fast path, its twin, and the test, which names the fast path, itself or in a helper of its file.
A new fast path gets a line here.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TORCH = "torch"  # the twin is a layer or function of torch
TEST = "test"  # the twin is written out in the test

# fast path: twin, test file, test
TWINS: dict[str, tuple[str, str, str]] = {
    "layers.attention.attend": ("layers.attention.attend_naive", "layers", "both_forms_are_the_formula"),
    "layers.long_attention.attend_if_long": (
        "layers.attention.attend_naive",
        "layers",
        "it_is_the_formula_with_its_gradients",
    ),
    "layers.heads.MultiHead": ("layers.heads.multi_head_naive", "layers", "it_is_the_formula_head_by_head"),
    "layers.heads.MultiHead.step": ("layers.heads.MultiHead.forward", "layers", "step_by_step_is_all_at_once"),
    "layers.bilinear.Bilinear.forward": ("layers.bilinear.Bilinear.naive", "layers", "both_forms_agree"),
    "layers.pixels.attend_pixels": ("layers.pixels.attend_pixels_naive", "layers", "both_forms_agree"),
    "layers.taylor.attend": ("layers.taylor_forms.naive", "layers", "every_form_is_the_formula"),
    "layers.taylor.step_in_place": ("layers.taylor.step", "layers", "in_place_is_step"),
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
    "layers.stacked_conv.conv_input_gradient": (TORCH, "layers", "the_ops_are_conv2d_and_its_gradients"),
    "layers.stacked_conv.conv_weight_gradient": (TORCH, "layers", "the_ops_are_conv2d_and_its_gradients"),
    "layers.kernels.convolution.input_gradient": (
        "layers.stacked_conv.conv_input_gradient",
        "layers/kernels",
        "convolutions_on_a_gpu",
    ),
    "layers.kernels.convolution.weight_gradient": (
        "layers.stacked_conv.conv_weight_gradient",
        "layers/kernels",
        "convolutions_on_a_gpu",
    ),
    "layers.kernels.convolution.forward": ("layers.stacked_conv.conv", "layers/kernels", "convolutions_on_a_gpu"),
    "layers.kernels.product.product": (TORCH, "layers/kernels", "products_on_a_gpu"),
    "layers.kernels.product.descend": (TEST, "layers/kernels", "products_on_a_gpu"),
    "layers.kernels.taylor_forward.forward": ("layers.taylor_forms.naive", "layers/kernels", "adversarial_inputs"),
    "layers.kernels.taylor_backward.backward": ("layers.taylor_forms.naive", "layers/kernels", "backward_and_forward"),
    "layers.kernels.taylor_states.states": (TEST, "layers/kernels", "a_slot_holds_the_keys_up_to_its_segment"),
    "layers.kernels.taylor_decode.decode": ("layers.taylor.step", "layers/kernels", "decode_in_place_is_step"),
    "models.translator.TaylorBilinear": (TEST, "models", "the_shown_taylor_weights_are_those_that_make_the_context"),
    "models.speech_encoder.convolve": (TORCH, "models", "the_convolution_is_torchs"),
    "models.gcn.GraphNetwork": (TEST, "models", "logits_are_those_of_the_formula_with_full_matrices"),
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


def sources(path: Path, prefix: str) -> list[str]:
    """The source of each test whose name begins so, with the helpers of its file that it names, directly or not."""
    text = path.read_text("utf-8")
    parts: dict[str, str] = {}
    for node in ast.parse(text).body:
        names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else assigned(node)
        start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        for name in names:
            parts[name] = "\n".join(text.splitlines()[start - 1 : node.end_lineno])
    return [whole(parts, name) for name in parts if name.startswith(f"test_{prefix}")]


def assigned(node: ast.stmt) -> list[str]:
    """The names that an assignment gives values to."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def whole(parts: Mapping[str, str], name: str) -> str:
    """The source of one part of a file and of the parts that it names."""
    found, left = {name}, [name]
    while left:
        words = set(re.findall(r"\w+", parts[left.pop()]))
        new = {each for each in parts if each in words and each not in found and not each.startswith("test_")}
        found |= new
        left += new
    return "\n".join(parts[each] for each in found)


@pytest.mark.parametrize("name", TWINS)
def test_the_fast_path_its_twin_and_their_test_are_there(name: str) -> None:
    twin, folder, test = TWINS[name]
    assert found(name)
    assert twin in (TORCH, TEST) or found(twin)
    module = name.split(".")[2 if "kernels" in name else 1]
    files = [TESTS / folder / f"test_{module}.py", TESTS / folder / "test_sampling.py"]
    tests = [source for path in files if path.exists() for source in sources(path, test)]
    assert tests, f"no test_{test} in {folder}"
    *rest, called = name.split(".")
    if called == "forward" and "kernels" not in name:
        called = rest[-1]  # the forward of a layer is called by the layer's name
    assert all(re.search(rf"\b{called}\b", source) for source in tests), f"test_{test} does not use {called}"
