"""The catalog: designs and tasks by name, as code. Importing it changes nothing."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tiebreak.errors import TiebreakError, is_user_file, nearest
from tiebreak.models.cnn import CnnKuzushiji, CnnPool, CnnPoolUnpadded, CnnStrided
from tiebreak.models.design import Design
from tiebreak.models.gcn import Gcn, GcnNoLoops, GcnNone, GcnNoneNoLoops, GcnRow, GcnRowNoLoops, MlpGraph
from tiebreak.models.global_settings import unchanged_settings
from tiebreak.models.mlp import Mlp
from tiebreak.models.recogniser import SpeechAttention, SpeechLstm, SpeechTaylor
from tiebreak.models.recurrent_language import LstmLanguage, RnnSigmoid, RnnTanh
from tiebreak.models.rows import AttentionRows
from tiebreak.models.text_classifier import TextBag, TextCnn, TextLstm
from tiebreak.models.transformer_language import TaylorTransformer, Transformer
from tiebreak.models.transformer_translator import TranslatorTransformer
from tiebreak.models.translator import TranslatorAttention, TranslatorPlain, TranslatorTaylor
from tiebreak.study import design_file
from tiebreak.study.own_task_keys import FUNCTIONS
from tiebreak.tasks.classify import Classify
from tiebreak.tasks.classify_text import ClassifyText
from tiebreak.tasks.interface import Task
from tiebreak.tasks.language import Language
from tiebreak.tasks.nodes import Nodes
from tiebreak.tasks.own_task import OwnTask
from tiebreak.tasks.transcribe import Transcribe
from tiebreak.tasks.translate import Translate
from tiebreak.text import listed

DESIGNS: Mapping[str, Design] = {
    "cnn-pool": Design(name="cnn-pool", family="classifier", build=CnnPool),
    "cnn-strided": Design(name="cnn-strided", family="classifier", build=CnnStrided),
    "cnn-pool-unpadded": Design(name="cnn-pool-unpadded", family="classifier", build=CnnPoolUnpadded),
    "cnn-kuzushiji": Design(name="cnn-kuzushiji", family="classifier", build=CnnKuzushiji),
    "mlp": Design(name="mlp", family="classifier", build=Mlp),
    "attention-rows": Design(name="attention-rows", family="classifier", build=AttentionRows),
    "translator-plain": Design(name="translator-plain", family="translator", build=TranslatorPlain),
    "translator-attention": Design(name="translator-attention", family="translator", build=TranslatorAttention),
    "translator-taylor": Design(name="translator-taylor", family="translator", build=TranslatorTaylor),
    "translator-transformer": Design(name="translator-transformer", family="translator", build=TranslatorTransformer),
    "gcn": Design(name="gcn", family="node-classifier", build=Gcn),
    "gcn-row": Design(name="gcn-row", family="node-classifier", build=GcnRow),
    "gcn-none": Design(name="gcn-none", family="node-classifier", build=GcnNone),
    "gcn-no-loops": Design(name="gcn-no-loops", family="node-classifier", build=GcnNoLoops),
    "gcn-row-no-loops": Design(name="gcn-row-no-loops", family="node-classifier", build=GcnRowNoLoops),
    "gcn-none-no-loops": Design(name="gcn-none-no-loops", family="node-classifier", build=GcnNoneNoLoops),
    "mlp-graph": Design(name="mlp-graph", family="node-classifier", build=MlpGraph),
    "rnn-sigmoid": Design(name="rnn-sigmoid", family="language", build=RnnSigmoid),
    "rnn-tanh": Design(name="rnn-tanh", family="language", build=RnnTanh),
    "lstm": Design(name="lstm", family="language", build=LstmLanguage),
    "transformer": Design(name="transformer", family="language", build=Transformer),
    "taylor-transformer": Design(name="taylor-transformer", family="language", build=TaylorTransformer),
    "text-bag": Design(name="text-bag", family="text-classifier", build=TextBag),
    "text-cnn": Design(name="text-cnn", family="text-classifier", build=TextCnn),
    "text-lstm": Design(name="text-lstm", family="text-classifier", build=TextLstm),
    "speech-lstm": Design(name="speech-lstm", family="recogniser", build=SpeechLstm),
    "speech-attention": Design(name="speech-attention", family="recogniser", build=SpeechAttention),
    "speech-taylor": Design(name="speech-taylor", family="recogniser", build=SpeechTaylor),
}

TASKS: Mapping[str, Task] = {
    "classify": Classify(),
    "translate": Translate(),
    "nodes": Nodes(),
    "language": Language(),
    "classify-text": ClassifyText(),
    "transcribe": Transcribe(),
}


def find_design(name: str, designs_from: str | None = None, family: str = "classifier") -> Design:
    """A design of the catalog, or one of the user's design file, which is run."""
    if name in DESIGNS:
        return DESIGNS[name]
    if designs_from is None:
        raise TiebreakError(f"no design {name!r}; {nearest(name, DESIGNS)}")
    path = Path(designs_from)
    names = design_file.declared_names(path)
    if name not in names:
        raise TiebreakError(f"{path}: no design {name!r}; {nearest(name, names)}")
    build = _load(path).DESIGNS[name]
    if not callable(build):
        raise TiebreakError(f"{path}: DESIGNS[{name!r}] should be an nn.Module class, not {type(build).__name__}")
    return Design(name=name, family=family, build=build, text_hash=design_file.file_hash(path))


def find_task(name: str, designs_from: str | None = None) -> Task:
    """A task of the catalog, or the user's own: functions of the design file, which is run."""
    if name in TASKS:
        return TASKS[name]
    path = Path(designs_from or "")
    module = _load(path)
    functions = {each: getattr(module, each, None) for each in FUNCTIONS}
    for each, function in functions.items():
        if not callable(function):
            found = f"{each} is no function" if function is not None else f"no function {each}"
            raise TiebreakError(f"{path}: {found}; the file of an own task defines {listed(FUNCTIONS)}")
    return OwnTask(str(path), *functions.values())  # type: ignore[arg-type]


class FromSource(SourceFileLoader):
    """Runs the text of a file, which is what a run's identity covers: compiled files are not read and not written."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _load(path: Path) -> ModuleType:
    name = f"tiebreak_designs_{path.stem}"
    loader = FromSource(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    try:
        with _importable(path.resolve().parent), unchanged_settings():
            loader.exec_module(module)
    except TiebreakError as error:
        raise TiebreakError(f"{path}: {error}") from None
    except (Exception, SystemExit) as error:  # a script that ends itself is no reason to end without a word
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise TiebreakError(
            f"{path}: {type(error).__name__}: {error} (line {where.lineno} of {where.filename})"
        ) from None
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules beside a design file can be imported by it, after all libraries; another file may have others."""
    before = set(sys.modules)

    def finder(path: str) -> FileFinder:
        if not Path(path).is_relative_to(folder):
            raise ImportError(path)
        return FileFinder(path, (FromSource, SOURCE_SUFFIXES))

    sys.path.append(str(folder))
    sys.path_hooks.insert(0, finder)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.path_hooks.remove(finder)
        for path in [path for path in sys.path_importer_cache if Path(path).is_relative_to(folder)]:
            del sys.path_importer_cache[path]
        for name in set(sys.modules) - before:
            origin = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if is_user_file(origin, folder):
                del sys.modules[name]
