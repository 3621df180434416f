from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tiebreak.plan.code_text import Written, written

PLAIN = """
    class Net(Base, kind="x"):
        rate: float = 0.5

        def forward(self, images: Tensor) -> Tensor:
            if images is None:
                raise ValueError("no images")
            return self.out(F.relu(images.flatten(1))) * SCALE
"""
EXPLAINED = '''
    class Net(Base, kind="x"):  # a comment
        """What it is."""

        rate: float = 0.5
        "What the rate is."

        def forward(self, images: Tensor) -> Tensor:
            """Logits."""
            if images is None:
                raise ValueError(f"there should be {more}")
            return self.out(
                F.relu(images.flatten(1))
            ) * SCALE
'''


def text(code: str, *, is_task: bool = False) -> Written:
    return written(ast.parse(dedent(code)).body, is_task=is_task)


def test_words_do_not_count() -> None:
    assert text(PLAIN) == text(EXPLAINED)


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.5", "0.25"), ("relu", "gelu"), ("(1)", "(2)"), ("* SCALE", "/ SCALE"), ("ValueError", "TypeError")],
)
def test_code_does(old: str, new: str) -> None:
    assert old in PLAIN
    assert text(PLAIN) != text(PLAIN.replace(old, new))


def test_the_text_is_the_same_for_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 gave functions and classes a field that is mostly empty. Stored results must be found again there."""
    before = text(PLAIN)
    for kind in (ast.FunctionDef, ast.ClassDef):
        monkeypatch.setattr(kind, "_fields", tuple(dict.fromkeys((*kind._fields, "type_params"))))
        monkeypatch.setattr(kind, "type_params", [], raising=False)
    assert text(PLAIN) == before


def test_the_text_of_a_statement_stays_what_it_is() -> None:
    assert text("x = F.relu(y, 2) + 0.5").content == (
        "[Assign(targets=[x ]value=BinOp(left=Call(func=F.relu args=[y Constant(value=2)])"
        "op=Add()right=Constant(value=0.5)))]"
    )


def test_names_are_collected_with_their_attributes_but_not_from_annotations() -> None:
    assert text(PLAIN).names == (
        "Base",
        "F.relu",
        "SCALE",
        "ValueError",
        "images",
        "images.flatten",
        "rate",
        "self.out",
    )
    assert text("start('tiebreak.data.sources')").names == ("start", "tiebreak.data.sources")


def test_methods_of_a_task_that_make_no_numbers_are_left_out() -> None:
    task = """
    class Task:
        def loss(self): return self._inner()
        def _inner(self): return 1
        def answer(self): return self._only()
        def _only(self): return self._deeper()
        def _deeper(self): return helper()
    """
    assert text(task, is_task=True) == text(task.replace("return self._only()", "return 2"), is_task=True)
    assert text(task, is_task=True).names == ("self._inner",)
    assert text(task, is_task=True) != text(task.replace("return 1", "return 2"), is_task=True)
    assert "helper" in text(task).names
