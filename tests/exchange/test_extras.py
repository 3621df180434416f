from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require


def test_a_library_that_is_not_there_says_what_to_install() -> None:
    with pytest.raises(TiebreakError, match=r"t\.parquet.*no_such_library.*pip install 'tiebreak\[parquet\]'"):
        require("no_such_library.part", "parquet", "t.parquet: Parquet")
    assert require("json", "parquet", "x").loads("1") == 1
