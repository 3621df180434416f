"""The port: taken, forbidden or free, and the link to it."""

from __future__ import annotations

import socket

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.watch.access import Access
from tiebreak.watch.web_server import access_of, link, open_port


def test_a_port_in_use_is_one_line_that_names_the_way_out() -> None:
    with open_port("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TiebreakError, match=rf"{port} is in use.*--port 0"):
            open_port("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "x" * 300, ""])
def test_an_address_that_is_not_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(TiebreakError, match=f"--host {host}"):
        open_port(host, 0)


def test_the_rule_follows_from_the_address_that_is_bound() -> None:
    with open_port("127.1", 0) as listening:
        access = access_of("127.1", listening)
    assert (access.token, access.accepts_host("127.1:80")) == (None, True)


def test_the_link_holds_the_token_where_there_is_one() -> None:
    assert link(Access(), 80) == "http://127.0.0.1:80/"
    assert link(Access(host="::1"), 80) == "http://[::1]:80/"
    remote = Access.of("0.0.0.0", "0.0.0.0", 80)
    assert link(remote, 80) == f"http://{socket.gethostname()}:80/?token={remote.token}"
