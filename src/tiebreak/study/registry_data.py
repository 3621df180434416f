"""The data sets by name: the family of tasks that can use each, and one line."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study.registry_types import DataEntry

OWN_DATA = "your own data is a path with a slash, such as ./images or ./pairs.tsv"

DATA: Mapping[str, DataEntry] = {
    "mnist5k": DataEntry(family="classifier", embedded=True, line="5,000 MNIST digits, 28x28, 10 classes"),
    "mnist": DataEntry(family="classifier", line="MNIST, 70,000 digits, 28x28, 10 classes"),
    "octmnist": DataEntry(family="classifier", line="retinal OCT, 109,309 images, 28x28, 4 classes (MedMNIST v2)"),
    "pneumoniamnist": DataEntry(family="classifier", line="chest X-rays, 5,856 images, 28x28, 2 classes (MedMNIST v2)"),
    "kmnist": DataEntry(family="classifier", line="Kuzushiji-MNIST, 70,000 cursive hiragana, 28x28, 10 classes"),
    "kuzushiji-kanji10": DataEntry(
        family="classifier", line="10 classes of Kuzushiji-Kanji, 13,931 images, 28x28; no download"
    ),
    "number-words": DataEntry(
        family="translator", embedded=True, line="5,000 numbers written as words, English to Spanish"
    ),
    "tatoeba-spa-eng": DataEntry(
        family="translator", line="12,483 short sentences, Spanish to English, the files of report R3; no download"
    ),
    "tatoeba-full": DataEntry(
        family="translator", line="118,964 sentences, Spanish to English, only the short ones are used; no download"
    ),
    "cora": DataEntry(
        family="node-classifier", line="citation graph: 2,708 papers, 5,278 citations, 1,433 words, 7 classes"
    ),
    "cora-planetoid": DataEntry(family="node-classifier", line="the Cora graph in the files of its authors"),
    "blocks": DataEntry(
        family="node-classifier", embedded=True, line="generated graph: 1,000 nodes, 120 features, 4 classes"
    ),
    "karate": DataEntry(family="node-classifier", embedded=True, line="Zachary's karate club: 34 members, 2 factions"),
    "ptb": DataEntry(family="language", line="Penn Treebank, 1,085,779 words of newspaper text, vocabulary 10,000"),
    "tinyshakespeare": DataEntry(family="language", line="1,115,394 characters of Shakespeare"),
    "pydoc": DataEntry(family="language", embedded=True, line="help texts of Python, vocabulary 2,000"),
    "markov": DataEntry(
        family="language", embedded=True, line="132,000 words generated from a grammar of known entropy"
    ),
    "reviews": DataEntry(
        family="text-classifier",
        embedded=True,
        line="4,000 generated reviews, positive or negative; word order matters",
    ),
    "spoken-numbers": DataEntry(
        family="recogniser", embedded=True, line="3,400 spoken numbers, synthetic speech, unseen voices in the test set"
    ),
    "an4": DataEntry(family="recogniser", line="AN4, 1,078 human utterances as 13 cepstra, spelt words and numbers"),
    "ljspeech": DataEntry(family="recogniser", line="LJ Speech 1.1, 13,100 clips of one reader, 24 hours"),
    "spoken-ljspeech": DataEntry(family="recogniser", line="the transcripts of LJ Speech as synthetic speech"),
}
