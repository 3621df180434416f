"""Which functions other processes can import, and which arguments they take."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.program.function_reference import check_arguments, reference


def train(seed: int, width: int, out: Path | None = None) -> dict[str, Any]:
    return {}


def test_a_function_of_a_module_can_be_imported() -> None:
    found = reference(train)
    assert (found.name, found.why_here) == (f"{__name__}:train", "")
    assert Path(found.folder) in Path(__file__).parents


def test_why_others_stay_in_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def inner(seed: int) -> None: ...

    assert "inside" in reference(inner).why_here
    assert "inside" in reference(lambda seed: None).why_here
    assert "lambda" in reference(eval("lambda seed: None")).why_here
    assert "plain" in reference(functools.partial(train, width=1)).why_here
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def cell(seed): ...", namespace)
    main.__dict__["cell"] = namespace["cell"]
    assert "notebook" in reference(namespace["cell"]).why_here
    script = tmp_path / "script.py"
    main.__dict__["__file__"] = str(script)
    script.write_text("import tiebreak\ntiebreak.compare(...)\n")
    assert "__main__" in reference(namespace["cell"]).why_here
    script.write_text("if __name__ == '__main__':\n    def cell(seed): ...\n")
    exec("\ndef cell(seed): ...", namespace)
    main.__dict__["cell"] = namespace["cell"]
    assert "put it above" in reference(namespace["cell"]).why_here
    script.write_text("\ndef cell(seed): ...\nif __name__ == '__main__':\n    pass\n")
    assert (reference(namespace["cell"]).name, reference(namespace["cell"]).folder) == ("script:cell", str(tmp_path))


@pytest.mark.parametrize(("names", "word"), [({"width", "lr"}, "'lr'"), (set[str](), "'width'")])
def test_arguments_that_do_not_fit(names: set[str], word: str) -> None:
    with pytest.raises(TiebreakError, match=word):
        check_arguments(train, names, "narrow")


def test_arguments_that_fit() -> None:
    check_arguments(train, {"width"}, "narrow")
    check_arguments(lambda **more: None, {"anything"}, "narrow")
    with pytest.raises(TiebreakError, match="'seed'"):
        check_arguments(lambda width: None, {"width"}, "narrow")
