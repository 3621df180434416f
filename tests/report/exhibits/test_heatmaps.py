from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from support import sample_findings, sample_report
from support.sample_exhibits import changed
from support.written import fresh_page, page, text
from tiebreak.report.exhibits import heatmaps


def test_every_example_has_a_map_of_each_arm() -> None:
    groups = heatmaps.figures(sample_findings.with_findings())["heat_groups"]
    assert [group.title for group in groups] == ["Cross attention, second layer, mean over heads", "Letters and frames"]
    assert all([panel.text for panel in group.panels] == ["pool, seed 0", "strided, seed 0", "unpadded, seed 0"]
               for group in groups)  # fmt: skip
    assert ">grande</text>" in groups[0].panels[0].svg
    assert groups[1].panels[0].svg.count("<image") == 2  # the spectrogram above the map
    assert ">frame</text>" in groups[1].panels[0].svg
    written = text(sample_findings.with_findings())
    assert "- Letters and frames: pool (seed 0), strided (seed 0), unpadded (seed 0)" in written


def test_forty_labels_are_all_there_and_more_are_sparse() -> None:
    names = np.asarray([f"w{number}" for number in range(41)])
    evidence = changed(
        sample_findings.with_findings(), "attention", weights_0=np.ones((40, 41)), rows_0=names[:40], columns_0=names
    )
    svg = heatmaps.figures(evidence)["heat_groups"][0].panels[0].svg
    assert ">w39</text>" in svg
    assert ">w37</text>" in svg
    assert svg.count(">w") == 40 + 9  # columns 0, 5, ... 40


def test_long_maps_keep_their_means() -> None:
    values = np.random.default_rng(0).random((301, 1501))
    small = heatmaps.shrunk(values, 7, 19)
    assert small.shape == (7, 19)
    np.testing.assert_allclose(small[0, 0], values[:43, :79].mean())
    assert heatmaps.shrunk(values[:5, :5], 7, 19) is not None
    np.testing.assert_array_equal(heatmaps.shrunk(values[:5, :5], 7, 19), values[:5, :5])


@pytest.mark.parametrize(
    "weights", [np.full((3, 3), np.nan), np.zeros((3, 3)), -np.ones((2, 2)), np.array([[np.inf, 1.0]]), np.ones((1, 1))]
)
def test_odd_weights_are_drawn(weights: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    evidence = changed(
        sample_findings.with_findings(), "attention", weights_0=weights, picture_1=np.full((2, 2), np.nan)
    )
    assert heatmaps.figures(evidence)["heat_groups"][0].panels[0].svg.startswith("<svg")


def test_what_is_no_map_is_left_out() -> None:
    for broken in (np.zeros((0, 3)), np.zeros(3), np.asarray([["a"]])):
        found = heatmaps.maps(changed(sample_findings.with_findings(), "attention", weights_0=broken))
        assert {item.title for item in found} == {"Letters and frames"}
    assert heatmaps.maps(changed(sample_findings.with_findings(), "attention", weights_0=None)) == []
    only = sample_findings.shown(sample_report.complete(), without=("cnn-pool", "cnn-strided"))
    assert {item.arm for item in heatmaps.maps(only)} == {"unpadded"}


def test_only_as_many_maps_as_fit_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heatmaps, "BUDGET", 1)
    assert "Shown: 1 of 6 maps." in fresh_page(sample_findings.with_findings())


def test_single_letters_are_all_named_up_to_sixty() -> None:
    letters = np.asarray(list("abcdefghij" * 6))
    evidence = changed(
        sample_findings.with_findings(),
        "attention",
        weights_0=np.ones((60, 50)),
        rows_0=letters,
        columns_0=letters[:50],
    )
    svg = heatmaps.figures(evidence)["heat_groups"][0].panels[0].svg
    assert len(re.findall(r">[a-j]</text>", svg)) == 110


def test_maps_of_one_example_stay_together_when_their_titles_differ() -> None:
    evidence = sample_findings.with_findings()
    identity = next(iter(evidence.records.exhibits))
    own = dict(evidence.records.exhibits[identity])
    arrays = {**own["attention"].arrays, "title_0": np.asarray("la casa → <the house>")}
    own["attention"] = dataclasses.replace(own["attention"], arrays=arrays)
    records = dataclasses.replace(evidence.records, exhibits={**evidence.records.exhibits, identity: own})
    first, second = heatmaps.figures(dataclasses.replace(evidence, records=records))["heat_groups"]
    assert first.title == "Example 1"
    assert [panel.title for panel in first.panels][:2] == [
        "la casa → <the house>",
        "Cross attention, second layer, mean over heads",
    ]
    assert second.title == "Letters and frames"
    written = page(dataclasses.replace(evidence, records=records))
    assert "la casa → &lt;the house&gt;</span>" in written
