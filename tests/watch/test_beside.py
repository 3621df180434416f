"""The page beside a run lives as long as the run."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from support import watched
from tiebreak.errors import TiebreakError
from tiebreak.watch.beside import page_beside
from tiebreak.watch.web_server import open_port


def test_it_serves_a_folder_that_is_made_later_and_ends_with_the_block(tmp_path: Path) -> None:
    with page_beside(tmp_path / "out", 0) as address:
        with urllib.request.urlopen(f"{address}api/studies") as answer:
            listed = json.load(answer)
        assert (listed["single"], listed["studies"][0]["state"]) == (True, "empty")
        watched.make_folder(tmp_path / "out", ended=1)
        with urllib.request.urlopen(f"{address}api/study/{listed['studies'][0]['id']}") as answer:
            assert json.load(answer)["id"] == listed["studies"][0]["id"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address)


def test_a_port_in_use_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    with open_port("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TiebreakError, match=f"port {port} is in use"), page_beside(tmp_path, port):
            raise AssertionError("never gets here")
