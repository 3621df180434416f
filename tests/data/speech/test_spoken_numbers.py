from __future__ import annotations

import pytest

from tiebreak.data.speech import espeak
from tiebreak.data.speech import spoken_numbers as numbers
from tiebreak.data.speech.alphabet import others
from tiebreak.data.speech.spoken_numbers import number_words, spoken_checksum, spoken_numbers

pytest.importorskip("espeakng_loader")


def test_numbers_in_words_are_those_of_num2words() -> None:
    num2words = pytest.importorskip("num2words").num2words
    for number in [*range(1000), *range(1000, 10_000, 37), 9999]:
        assert number_words(number) == num2words(number).replace(",", "").replace(" and ", " ")


def test_no_two_numbers_sound_alike() -> None:
    assert len({number_words(number) for number in range(10_000)}) == 10_000


def test_the_splits_have_the_announced_sizes_and_are_always_the_same() -> None:
    spoken = spoken_numbers()
    assert {split: len(said) for split, said in spoken.items()} == {"train": 3000, "val": 200, "test": 200}
    assert spoken == spoken_numbers()


def test_no_number_and_no_voice_variant_is_in_two_splits() -> None:
    spoken = spoken_numbers()
    texts = {split: {utterance.text for utterance in said} for split, said in spoken.items()}
    variants = {split: {utterance.voice.partition("+")[2] for utterance in said} for split, said in spoken.items()}
    for kinds in (texts, variants):
        assert not kinds["train"] & kinds["test"]
        assert not kinds["train"] & kinds["val"]
        assert not kinds["val"] & kinds["test"]
    assert variants == {split: set(names) for split, names in numbers.VARIANTS.items()}


def test_every_word_and_every_character_is_heard_in_training() -> None:
    spoken = spoken_numbers()
    words = {split: {word for said in spoken[split] for word in said.text.split()} for split in spoken}
    assert words["val"] | words["test"] <= words["train"]
    assert not others(said.text for split in spoken for said in spoken[split])
    assert max(len(said.text) for said in spoken["train"]) <= 97


def test_the_checksum_sees_what_is_said_how_and_by_which_version(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = spoken_numbers()
    seen = {spoken_checksum(spoken)}
    assert spoken_checksum(spoken_numbers()) in seen
    seen.add(spoken_checksum({**spoken, "test": spoken["test"][::-1]}))
    monkeypatch.setattr(espeak, "CHUNK", 51)
    seen.add(spoken_checksum(spoken))
    monkeypatch.setattr(espeak, "version", lambda: "2.0")
    seen.add(spoken_checksum(spoken))
    assert len(seen) == 4
