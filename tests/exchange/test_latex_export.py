from __future__ import annotations

import pytest

from tiebreak.exchange.latex_export import escape, numbers


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & c", r"a\_b \& c"),
        ("100 %", r"100 \%"),
        (r"\def{x}", r"\textbackslash{}def\{x\}"),
        ("[x]", "{[}x{]}"),
        ("naïve Größe", "naïve Größe"),
        ("α − β ±1", r"$\alpha$ $-$ $\beta$ $\pm$1"),
        ("中\x1b", r"U+4E2D\textbackslash{}x1b"),
        ("two\nlines", "two lines"),
    ],
)
def test_any_text_becomes_latex_that_compiles(text: str, latex: str) -> None:
    assert escape(text) == latex


def test_signed_numbers_are_mathematics() -> None:
    assert numbers("accuracy -0.003, +1.5 to x-1") == "accuracy $-0.003$, $+1.5$ to x-1"
