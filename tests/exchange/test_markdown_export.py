from __future__ import annotations

from tiebreak.exchange.markdown_export import escape


def test_names_are_shown_as_they_stand() -> None:
    assert escape("a_b | <i> *x*") == r"a_b \| &lt;i&gt; \*x\*"
